# SPDX-License-Identifier: Apache-2.0
"""The write-ahead journal of a run: what it owes the machine, noted before it is made, struck out once it is undone.

It lies in /run/roundabout/runs/<id>.json, with a copy in the run's folder for people, and is locked as long as its run
lives. What a dead run left is undone from it, newest first.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from roundabout.errors import RoundaboutError
from roundabout.runner.machine.state import open_private, tidy
from roundabout.store import files

Entry = dict[
    str, Any
]  # {"kind": "folder" | "testbed" | "transport" | "settings", ...}: what the facility's `undo` understands
Undo = Callable[[Entry], None]
T = TypeVar("T")


class LostHostsError(RoundaboutError):
    """Hosts did not answer when something was to be undone there, which therefore stays owed."""


class Journal:
    """A live run's journal."""

    def __init__(self, path: Path, copy: Path) -> None:
        self._path, self._copy = path, copy
        self._owed: list[Entry] = []
        self._later: list[tuple[Entry, Undo]] = []

    @contextmanager
    def owing(self, entry: Entry, undo: Undo) -> Iterator[None]:
        """Note `entry`, and at the end undo it, whether it was made wholly, in part or not at all.

        What waits for a lost host, which is no reason to end the run, is undone by `catch_up`.
        """
        self._owed.append(entry)
        self._save()
        try:
            yield
        finally:
            try:
                self._undo(entry, undo)
            except LostHostsError:
                self._later.append((entry, undo))

    @property
    def kinds(self) -> list[str]:
        """What is owed, in short."""
        return sorted({entry["kind"] for entry in self._owed})

    def catch_up(self) -> None:
        """Undo at last what waited for lost hosts. Raises one RoundaboutError for all that still cannot be."""
        later, self._later = self._later, []
        raise_together(each(lambda owed: self._undo(*owed), reversed(later)))

    def _undo(self, entry: Entry, undo: Undo) -> None:
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
    """The journal of a run, locked for as long as this context lasts; gone afterwards if nothing is owed.

    Raises RoundaboutError where lost hosts keep something from being undone; what ended the run comes first.
    """
    folder = state / "runs"
    with _locked(folder / f"{run_id}.lock"):
        journal = Journal(folder / f"{run_id}.json", run_path / "journal.json")
        try:
            yield journal
            journal.catch_up()
        except RoundaboutError as error:
            raise_together([error, *each(lambda owed: owed.catch_up(), [journal])])
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
    """Undo what the dead run owes, newest first, and forget it. What fails stays in the journal.

    Raises one RoundaboutError for all that failed.
    """
    path = state / "runs" / f"{run_id}.json"
    owed = _owed(path)

    def settle_one(entry: Entry) -> None:
        undo(entry)
        owed.remove(entry)
        files.write_json(path, {"owed": owed})

    raise_together(each(settle_one, reversed(list(owed))))
    _forget(path.parent, run_id)


def each(act: Callable[[T], None], things: Iterable[T]) -> list[RoundaboutError]:
    """Act on everything, whatever becomes of the rest; what failed."""
    failed = []
    for thing in things:
        try:
            act(thing)
        except RoundaboutError as error:
            failed.append(error)
    return failed


def raise_together(errors: list[RoundaboutError]) -> None:
    """Raise one RoundaboutError for all of them, if there are any: the only one, or else what each says."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        hints = dict.fromkeys(error.hint for error in errors if error.hint)
        raise RoundaboutError("; ".join(dict.fromkeys(error.message for error in errors)), "\n".join(hints))


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
