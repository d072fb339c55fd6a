# SPDX-License-Identifier: Apache-2.0
"""Kinds of damage to one file of a run: each is a function of the file's path."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Damage = Callable[[Path], None]


def missing(path: Path) -> None:
    path.unlink()


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def swapped(path: Path) -> None:
    """Exchange the file with that of another trial, or else with a file beside it."""
    run = next(folder for folder in path.parents if (folder / "trials").is_dir())
    content = path.read_bytes()
    like = [other for other in sorted(run.rglob(path.name)) if other.read_bytes() != content]
    beside = [other for other in sorted(path.parent.iterdir()) if other.is_file() and other != path]
    other = [*like, *beside, *sorted(run.glob("trials/*/trial.json"))][0]
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def moved(path: Path) -> None:
    """Leave a link to the file in its place."""
    elsewhere = path.with_name(f".{path.name}.elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def other_table(path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), path)


def table_of_other_types(path: Path) -> None:
    names = pq.read_table(path).schema.names if path.suffix == ".parquet" else ["run", "trial", "valid"]
    pq.write_table(pa.table({name: [1.5] for name in names}), path)


def table_of_nulls(path: Path) -> None:
    fields = {"run": pa.string(), "trial": pa.string(), "valid": pa.bool_()}
    pq.write_table(pa.table({name: pa.nulls(2, kind) for name, kind in fields.items()}), path)


def newer_version(path: Path) -> None:
    document = json.loads(path.read_text()) if path.suffix == ".json" else {}
    path.write_text(json.dumps({**document, "schema": 99}))


def other_values(path: Path) -> None:
    """Give every field another value of its kind; a record is no longer sealed."""
    document = json.loads(path.read_text()) if path.suffix == ".json" else {}
    odd = {dict: {"a": [None, 1e999]}, list: [1], str: "\x1b[31m", int: -1, float: float("nan"), bool: False}
    kept = {name: document[name] for name in ("schema", "run", "trial") if name in document}
    changed = {name: odd.get(type(value)) for name, value in document.items() if name != "sha256"}
    path.write_text(json.dumps(changed | kept))


def holding(content: bytes) -> Damage:
    def damage(path: Path) -> None:
        path.write_bytes(content)

    return damage


# Each of these loses what was measured, so no report may succeed.
LOSSES: dict[str, Damage] = {each.__name__: each for each in (missing, truncated, swapped, moved)}
DAMAGES: dict[str, Damage] = {
    **LOSSES,
    **{
        each.__name__: each
        for each in (
            folder,
            dangling_link,
            link_to_itself,
            pipe,
            other_table,
            table_of_other_types,
            table_of_nulls,
            newer_version,
            other_values,
        )
    },
    "empty": holding(b""),
    "binary": holding(bytes(range(256)) * 4),
    "other text": holding(b"hello\n"),
    "JSON: null": holding(b"null"),
    "JSON: a list": holding(b"[1, 2]"),
    "JSON: an empty object": holding(b"{}"),
    "JSON: too deep": holding(b"[" * 100_000),
    "JSON: a number": holding(b"1e999"),
}
