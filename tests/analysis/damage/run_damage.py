# SPDX-License-Identifier: Apache-2.0
"""Every file of a run, damaged in every way, one at a time; and what `roundabout report` says of it."""

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from roundabout.cli.main import main

MADE_ANEW = ("summary.json", "trials.parquet", "report.html", "journal.json")
"""Of what else the run holds, by `report`; the journal is a copy for people."""


def deleted(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    """To half of it; a copy shares nothing with what it is a copy of."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])


def swapped(path: Path) -> None:
    """With the same file of another trial (or, where there is none, with any file beside it)."""
    run = next(folder for folder in path.parents if (folder / "trials").is_dir())
    content = path.read_bytes()
    like = [other for other in sorted(run.rglob(path.name)) if other.read_bytes() != content]
    beside = [other for other in sorted(path.parent.iterdir()) if other.is_file() and other != path]
    other = [*like, *beside, *sorted(run.glob("trials/*/trial.json"))][0]
    others = other.read_bytes()
    for each, what in ((path, others), (other, content)):
        each.unlink()
        each.write_bytes(what)


def linked(path: Path) -> None:
    """To a copy of itself elsewhere."""
    elsewhere = path.with_name(f".{path.name}.elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


WAYS: tuple[Callable[[Path], None], ...] = (deleted, cut, swapped, linked)


def files_of(run: Path) -> list[Path]:
    """All files that hold what was measured, relative to the run."""
    found = sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file())
    return [path for path in found if path.name not in MADE_ANEW and path.parts[0] != "partial"]


def each_damage(run: Path, scratch: Path, files: list[Path]) -> Iterator[tuple[str, int, str]]:
    """What was done, and the status and the complaint of a report on it."""
    for file in files:
        for way in WAYS:
            copy = scratch / run.parent.name / run.name
            shutil.copytree(run, copy, copy_function=os.link)
            way(copy / file)
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                status = main(["report", "--json", str(copy)])
            yield f"{file} {way.__name__}", status, said.getvalue()
            shutil.rmtree(copy)


def wrong(what: str, status: int, said: str) -> str | None:
    """What is not as it should be: one clear message, which names the file, and a status that is not 0."""
    name, way = what.split()
    clear = said.startswith("error: ") and said.count("error: ") == 1 and "unexpected" not in said
    named = name in said or way == "swapped" or "no run" in said
    return None if status == 1 and clear and named else f"{what}: status {status}: {said or 'nothing was said'}"
