# SPDX-License-Identifier: Apache-2.0
"""Write-ahead undo journals: a run writes an entry before it creates something, and removes it after undoing it.

Journals are in a folder that survives a reboot, because changes to a rack do. Changes of a lab do not survive, and
undoing them again is harmless. Readers and writers hold the machine's lease. Therefore every journal except the
holder's own belongs to a dead run.
"""

import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.state import ROOT_STATE, STATE, make_private, remove_empty, user_folder
from roundabout.store import files

ROOT_JOURNALS = Path("/var/lib/roundabout/runs")
# Several machines may share a home: a journal of another one may belong to a live run.
JOURNALS = ROOT_JOURNALS if STATE == ROOT_STATE else user_folder() / "runs" / platform.node()
# Journals of ordinary users of earlier versions, which must still be replayed after an upgrade.
FORMER_JOURNALS = STATE / "runs"
OTHER_FOLDER = "set XDG_STATE_HOME to a folder that you may write, and that a reboot does not empty"
# Key of the entries in journals of earlier versions, which must still be replayed after an upgrade.
FORMER_KEY = "owed"

Entry = dict[str, Any]  # {"kind": "folder" | "testbed" | "transport" | "settings", ...}, the argument of `undo`
Undo = Callable[[Entry], None]
T = TypeVar("T")


class LostHostsError(RoundaboutError):
    """Error for hosts that did not answer during cleanup. The entry stays in the journal."""


class CleanupError(RoundaboutError):
    """Error for a failed cleanup after a dead run. `entries` has the entries that remain."""

    def __init__(self, message: str, hint: str | None, entries: list[Entry]) -> None:
        super().__init__(message, hint)
        self.entries = entries


class Journal:
    """The undo journal of a live run."""

    def __init__(self, path: Path, run_path: Path) -> None:
        self._path, self._run_path = path, run_path
        self._pending: list[tuple[Entry, Undo]] = []  # the entries that are not undone yet, the oldest first

    @contextmanager
    def register_undo(self, entry: Entry, undo: Undo) -> Iterator[None]:
        """Write `entry` to the journal, and call `undo` at the end of the block, even after a failure in the block.

        If a host is unreachable, the entry stays for `catch_up`, and the run continues.
        """
        self._pending.append((entry, undo))
        self._save()
        try:
            yield
        finally:
            with suppress(LostHostsError):
                self._undo((entry, undo))

    @property
    def entry_kinds(self) -> list[str]:
        """Return the kinds of the entries that are not undone yet."""
        return sorted({entry["kind"] for entry, _ in self._pending})

    def catch_up(self) -> list[RoundaboutError]:
        """Retry the entries that remain after lost hosts or an interruption, and return the errors."""
        return apply_to_each(self._undo, reversed(list(self._pending)))

    def _undo(self, pending: tuple[Entry, Undo]) -> None:
        if pending not in self._pending:
            return  # an interruption kept it from being undone in its turn: it was at the end
        entry, undo = pending
        undo(entry)
        self._pending.remove(pending)
        with suppress(files.StoreError):  # on a full disk the rest must still be undone, and this may be so twice
            self._save()

    def _save(self) -> None:
        write_entries(self._path, str(self._run_path), [entry for entry, _ in self._pending])


@contextmanager
def open_journal(run_id: str, run_path: Path, folder: Path) -> Iterator[Journal]:
    """Open the journal of a run in `folder`. Delete the journal at the end of the block if it has no entries.

    Raises RoundaboutError if the block or the undoing of an entry failed. Several errors are combined.
    """
    _make_folder(folder)
    journal = Journal(folder / f"{run_id}.json", run_path)
    errors = []
    try:
        yield journal
    except RoundaboutError as error:
        errors.append(error)
    finally:
        errors += journal.catch_up()
        if not journal._pending:
            _forget(journal._path)
        raise_together(errors)


def _make_folder(folder: Path) -> None:
    """Create a folder of journals if it is missing. Raises StoreError, with a hint on an ordinary user's folder."""
    with files.disk_errors(folder, OTHER_FOLDER if folder == JOURNALS != ROOT_JOURNALS else None):
        make_private(folder)


def runs_with_journal(folder: Path) -> list[str]:
    """Return the ids of the runs that have a journal in `folder` or in the former folder."""
    return sorted({path.stem for each in (folder, FORMER_JOURNALS) for path in each.glob("*.json")})


def journals_of_other_machines(folder: Path) -> list[Path]:
    """Return the user's journals of other machines that share this user's home."""
    found = folder.parent.glob("*/*.json") if folder != ROOT_JOURNALS else ()
    return sorted(path for path in found if path.parent != folder)


def run_path(run_id: str, folder: Path) -> Path | None:
    """Return the absolute path of a run's folder from its journal in `folder` or in the former folder, or None.

    Raises StoreError if it is damaged.
    """
    journals = (each / f"{run_id}.json" for each in (folder, FORMER_JOURNALS))
    return next((Path(files.read_json(path)["run"]) for path in journals if path.exists()), None)


def replay(folder: Path, undo: Undo, report: Callable[[str], None]) -> list[CleanupError]:
    """Undo the entries of all dead runs, the newest first, and return the errors. Failed entries remain.

    `report` gets each run's id before its entries are undone. The caller must hold the machine's lease.
    """
    _move_former_journals(folder)
    for partial in folder.glob(".*.partial"):  # of a run that was killed while it wrote
        partial.unlink()
    failed = []
    for path in sorted(folder.glob("*.json")):
        try:
            _replay_journal(path, undo, report)
        except CleanupError as error:
            failed.append(error)
    remove_empty(folder)
    return failed


def _move_former_journals(folder: Path) -> None:
    """Move the journals of earlier versions to `folder`, which a reboot does not empty. Raises StoreError."""
    for path in FORMER_JOURNALS.glob("*.json"):
        _make_folder(folder)
        with files.replace_file(folder / path.name) as file:
            file.write(path.read_bytes())
        _forget(path)


def _replay_journal(path: Path, undo: Undo, report: Callable[[str], None]) -> None:
    content = _read(path)
    left = list(content["pending"])
    report(
        f"undoing what run {path.stem} left: {', '.join(sorted({entry['kind'] for entry in left})) or 'its journal'}"
    )

    def settle_one(entry: Entry) -> None:
        undo(entry)
        left.remove(entry)
        write_entries(path, content["run"], left)

    try:
        raise_together(apply_to_each(settle_one, reversed(content["pending"])))
    except RoundaboutError as error:
        raise CleanupError(f"run {path.stem}: {error.message}", error.hint, left) from error
    _forget(path)


def apply_to_each(act: Callable[[T], None], things: Iterable[T]) -> list[RoundaboutError]:
    """Call `act` for every item, even if some calls fail, and return the errors."""
    failed = []
    for thing in things:
        try:
            act(thing)
        except RoundaboutError as error:
            failed.append(error)
    return failed


def apply_in_parallel(act: Callable[[T], None], things: Collection[T]) -> list[RoundaboutError]:
    """Call `act` for every item in parallel, so that waits for frozen hosts overlap. Return the errors."""
    with ThreadPoolExecutor(len(things) or 1, thread_name_prefix="undo") as pool:
        return [error for failed in pool.map(lambda thing: apply_to_each(act, [thing]), things) for error in failed]


def raise_together(errors: Sequence[RoundaboutError]) -> None:
    """Raise one RoundaboutError that combines all `errors`. Do nothing without errors."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        hints = dict.fromkeys(error.hint for error in errors if error.hint)
        raise RoundaboutError("; ".join(dict.fromkeys(error.message for error in errors)), "\n".join(hints))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = files.read_json(path)
        pending = content["pending"] if "pending" in content else content[FORMER_KEY]
        return {"run": content.get("run", ""), "pending": [{"kind": entry["kind"], **entry} for entry in pending]}
    except (files.StoreError, LookupError, TypeError) as error:
        hint = "see what is left of that run (`roundabout lab status`), undo it, and remove the file"
        raise CleanupError(f"{path}: found no journal of a run: {error}", hint, []) from error


def write_entries(path: Path, run: str, left: list[Entry]) -> None:
    """Replace the journal file `path` by one with the entries `left` of the run in folder `run`. Raises StoreError."""
    files.write_json(path, {"run": run, "pending": left})


def _forget(path: Path) -> None:
    for each_ in (path.with_name(f".{path.name}.partial"), path):
        each_.unlink(missing_ok=True)
    remove_empty(path.parent)
