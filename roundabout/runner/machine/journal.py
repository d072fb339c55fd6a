# SPDX-License-Identifier: Apache-2.0
"""The write-ahead journals of runs: what each owes, noted before it is made, struck out once it is undone.

They lie in one folder of this machine that outlives a reboot, as do a rack's debts. Those of a lab do not: to undo them
then finds nothing, as to undo anything twice does. Whoever reads or writes there holds the machine's lease, so that
every journal but the holder's own is a dead run's.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.state import make_private, tidy
from roundabout.store import files

JOURNALS = Path("/var/lib/roundabout/runs")

Entry = dict[str, Any]  # {"kind": "folder" | "testbed" | "transport" | "settings", ...}: what `undo` understands
Undo = Callable[[Entry], None]
T = TypeVar("T")


class LostHostsError(RoundaboutError):
    """Hosts did not answer when something was to be undone there, which therefore stays owed."""


class OwedError(RoundaboutError):
    """What a dead run owes could not be undone; `owed` is left of it."""

    def __init__(self, message: str, hint: str | None, owed: list[Entry]) -> None:
        super().__init__(message, hint)
        self.owed = owed


class Journal:
    """A live run's journal."""

    def __init__(self, path: Path, run_path: Path) -> None:
        self._path, self._run_path = path, run_path
        self._owed: list[tuple[Entry, Undo]] = []

    @contextmanager
    def owing(self, entry: Entry, undo: Undo) -> Iterator[None]:
        """Note `entry`, and at the end undo it, whether it was made wholly, in part or not at all.

        What waits for a lost host, which is no reason to end the run, is undone by `catch_up`.
        """
        self._owed.append((entry, undo))
        self._save()
        try:
            yield
        finally:
            with suppress(LostHostsError):
                self._undo((entry, undo))

    @property
    def kinds(self) -> list[str]:
        """What is owed, in short."""
        return sorted({entry["kind"] for entry, _ in self._owed})

    def catch_up(self) -> list[RoundaboutError]:
        """Undo what is still owed: it waited for lost hosts, or an interruption came in between. What failed."""
        return each(self._undo, reversed(list(self._owed)))

    def _undo(self, owed: tuple[Entry, Undo]) -> None:
        if owed not in self._owed:
            return  # an interruption kept it from being undone in its turn: it was at the end
        entry, undo = owed
        undo(entry)
        self._owed.remove(owed)
        with suppress(files.StoreError):  # on a full disk the rest must still be undone, and this may be so twice
            self._save()

    def _save(self) -> None:
        _write(self._path, str(self._run_path), [entry for entry, _ in self._owed])


@contextmanager
def keep(run_id: str, run_path: Path, folder: Path) -> Iterator[Journal]:
    """The journal of a run in `folder`; gone afterwards if nothing is owed.

    Raises RoundaboutError where something could not be undone; what ended the run comes first.
    """
    with files.disk_errors(folder):
        make_private(folder)
    journal = Journal(folder / f"{run_id}.json", run_path)
    errors = []
    try:
        yield journal
    except RoundaboutError as error:
        errors.append(error)
    finally:
        errors += journal.catch_up()
        if not journal._owed:
            _forget(journal._path)
        raise_together(errors)


def known(folder: Path) -> list[str]:
    """Ids of the runs that owe something, the holder of the machine's lease among them."""
    return sorted(path.stem for path in folder.glob("*.json"))


def run_path(run_id: str, folder: Path) -> Path | None:
    """The folder of a run that has a journal, absolute; None without one. Raises StoreError."""
    path = folder / f"{run_id}.json"
    return Path(files.read_json(path)["run"]) if path.exists() else None


def adopt(state: Path, folder: Path) -> None:
    """Take into `folder` the journals of the last revision's runs, which lay in the machine's state.

    The machine's lease must be held. Raises OwedError where one cannot be read.
    """
    for path in sorted((state / "runs").glob("*.json")):
        content = _read(path)
        make_private(folder)
        _write(folder / path.name, content["run"], content["owed"])
        path.unlink()
    for left in (state / "runs").glob("*"):  # locks
        left.unlink()
    tidy(state / "runs")


def settle(folder: Path, undo: Undo, tell: Callable[[str], None]) -> list[OwedError]:
    """Undo all that dead runs owe, each newest first, and forget it; what failed, which stays owed.

    `tell` hears of each run before that. The machine's lease must be held.
    """
    for partial in folder.glob(".*.partial"):  # of a run that was killed while it wrote
        partial.unlink()
    failed = []
    for path in sorted(folder.glob("*.json")):
        try:
            _settle(path, undo, tell)
        except OwedError as error:
            failed.append(error)
    tidy(folder)
    return failed


def _settle(path: Path, undo: Undo, tell: Callable[[str], None]) -> None:
    content = _read(path)
    left = list(content["owed"])
    tell(f"undoing what run {path.stem} left: {', '.join(sorted({entry['kind'] for entry in left})) or 'its journal'}")

    def settle_one(entry: Entry) -> None:
        undo(entry)
        left.remove(entry)
        _write(path, content["run"], left)

    try:
        raise_together(each(settle_one, reversed(content["owed"])))
    except RoundaboutError as error:
        raise OwedError(f"run {path.stem}: {error.message}", error.hint, left) from error
    _forget(path)


def each(act: Callable[[T], None], things: Iterable[T]) -> list[RoundaboutError]:
    """Act on everything, whatever becomes of the rest; what failed."""
    failed = []
    for thing in things:
        try:
            act(thing)
        except RoundaboutError as error:
            failed.append(error)
    return failed


def side_by_side(act: Callable[[T], None], things: Collection[T]) -> list[RoundaboutError]:
    """Like `each`, all at once: hosts that are frozen are waited for together."""
    with ThreadPoolExecutor(len(things) or 1, thread_name_prefix="undo") as pool:
        return [error for failed in pool.map(lambda thing: each(act, [thing]), things) for error in failed]


def raise_together(errors: Sequence[RoundaboutError]) -> None:
    """Raise one RoundaboutError for all of them, if there are any: the only one, or else what each says."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        hints = dict.fromkeys(error.hint for error in errors if error.hint)
        raise RoundaboutError("; ".join(dict.fromkeys(error.message for error in errors)), "\n".join(hints))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = files.read_json(path)
        entries = [{"kind": entry["kind"], **entry} for entry in content["owed"]]
        return {"run": content.get("run", ""), "owed": entries}
    except (files.StoreError, LookupError, TypeError) as error:
        hint = "see what is left of that run (`roundabout lab status`), undo it, and remove the file"
        raise OwedError(f"{path}: found no journal of a run: {error}", hint, []) from error


def _write(path: Path, run: str, left: list[Entry]) -> None:
    files.write_json(path, {"run": run, "owed": left})


def _forget(path: Path) -> None:
    for each_ in (path.with_name(f".{path.name}.partial"), path):
        each_.unlink(missing_ok=True)
    tidy(path.parent)
