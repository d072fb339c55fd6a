# SPDX-License-Identifier: Apache-2.0
"""The write-ahead journal of a run: what it owes the machine, noted before it is made, struck out once it is undone.

It lies in /run/roundabout/runs/<id>.json, with a copy in the run's folder for people, and is locked as long as its run
lives. What a dead run left is undone from it, newest first.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from roundabout.runner.state import open_private, tidy
from roundabout.store import files

Entry = dict[
    str, Any
]  # {"kind": "folder" | "testbed" | "transport" | "settings", ...}: what the facility's `undo` understands
Undo = Callable[[Entry], None]


class Journal:
    """A live run's journal."""

    def __init__(self, path: Path, copy: Path) -> None:
        self._path, self._copy = path, copy
        self._owed: list[Entry] = []

    @contextmanager
    def owing(self, entry: Entry, undo: Undo) -> Iterator[None]:
        """Note `entry`, and at the end undo it, whether it was made wholly, in part or not at all."""
        self._owed.append(entry)
        self._save()
        try:
            yield
        finally:
            undo(entry)
            self._owed.remove(entry)
            self._save()

    def _save(self) -> None:
        content = {"run": str(self._copy.parent), "pid": os.getpid(), "owed": self._owed}
        files.write_json(self._path, content)
        with suppress(files.StoreError):  # on a full disk what is owed must still be undone
            files.write_json(self._copy, content)


@contextmanager
def keep(run_id: str, run_path: Path, state: Path) -> Iterator[Journal]:
    """The journal of a run, locked for as long as this context lasts; gone afterwards if nothing is owed."""
    folder = state / "runs"
    with _locked(folder / f"{run_id}.lock"):
        journal = Journal(folder / f"{run_id}.json", run_path / "journal.json")
        try:
            yield journal
        finally:
            if not journal._owed:
                _forget(folder, run_id)


def live(state: Path) -> frozenset[str]:
    """Ids of the runs under way."""
    return frozenset(path.stem for path in (state / "runs").glob("*.lock") if _is_held(path))


def dead(state: Path) -> dict[str, list[Entry]]:
    """What dead runs still owe, run id -> entries, oldest first."""
    known = {path.stem for pattern in ("*.json", "*.lock") for path in (state / "runs").glob(pattern)}
    gone = known - live(state)
    return {run_id: _owed(state / "runs" / f"{run_id}.json") for run_id in sorted(gone)}


def settle(run_id: str, state: Path, undo: Undo) -> None:
    """Undo what the dead run owes, newest first, and forget it. What fails stays in the journal."""
    path = state / "runs" / f"{run_id}.json"
    owed = _owed(path)
    while owed:
        undo(owed[-1])
        owed.pop()
        files.write_json(path, {"owed": owed})
    _forget(path.parent, run_id)


def _owed(path: Path) -> list[Entry]:
    return list(files.read_json(path)["owed"]) if path.exists() else []


def _forget(folder: Path, run_id: str) -> None:
    for name in (f".{run_id}.json.partial", f"{run_id}.json", f"{run_id}.lock"):
        (folder / name).unlink(missing_ok=True)
    tidy(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = open_private(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
