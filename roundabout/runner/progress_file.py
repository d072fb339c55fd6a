# SPDX-License-Identifier: Apache-2.0
"""The progress file in a run's folder, through which other processes see its progress. It is removed at the end.

The writer replaces the file as a whole, and locks (flock) each new file before it takes its place. The kernel releases
the lock when the writer dies, so a test of the lock shows if the writer lives.
"""

import fcntl
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from roundabout.core import file_lock
from roundabout.runner.machine import machine_lease, undo_journal
from roundabout.runner.machine.state import STATE
from roundabout.runner.machine.undo_journal import JOURNALS
from roundabout.store import Run, files

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from roundabout.runner.progress_events import Progress

NAME = "live.json"
PERIOD_S = 0.5  # least seconds between writes, because writing takes CPU time from the measured jobs


@cache
def _progress() -> "TypeAdapter[Progress]":
    """Return the record's reader and writer, imported here: the import takes longer than to list runs."""
    from pydantic import TypeAdapter  # noqa: PLC0415

    from roundabout.runner.progress_events import Progress  # noqa: PLC0415

    return TypeAdapter(Progress)


@dataclass(frozen=True)
class StoredProgress:
    """The content of a progress file. `is_live` is True if its writer is alive."""

    progress: "Progress"
    is_live: bool


class ProgressWriter:
    """A View that writes the progress file: immediately if a trial begins or ends, else every PERIOD_S."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._held: int | None = None
        self._said: tuple[object, ...] = ()
        self._written_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._end()

    def show(self, progress: "Progress") -> None:
        """Write the progress unless the last write was recent. Errors such as a full disk are ignored."""
        if not progress.path:
            return
        path, said = Path(progress.path) / NAME, (progress.path, progress.what, progress.phase)
        if path != self._path:
            self._end()
        if said != self._said or time.monotonic() - self._written_s >= PERIOD_S:
            self._path, self._said, self._written_s = path, said, time.monotonic()
            with suppress(OSError):
                self._write(path, _progress().dump_json(progress, indent=1))

    def notice(self, text: str) -> None:
        """Leave the notice to other views, because the progress file has what changes."""

    def leave(self, pending: Sequence[str]) -> None:
        """Leave the progress file in place and release its lock."""

    def _write(self, path: Path, content: bytes) -> None:
        partial = path.with_name(f".{path.name}.partial")
        spare = None
        try:
            with files.create_file(partial) as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
                file.write(content)
                spare = os.dup(file.fileno())  # the lock outlives the file's closing
            partial.rename(path)  # not synced, because it is useless after a power cut
            spare, self._held = self._held, spare
        finally:
            if spare is not None:  # the lock of the previous record, or of a new one that could not replace it
                os.close(spare)
            partial.unlink(missing_ok=True)

    def _end(self) -> None:
        if self._path and self._held is not None:
            with suppress(OSError):
                if file_lock.is_file_at(self._held, self._path):  # a process that resumed the run has its own file
                    self._path.unlink()
            os.close(self._held)
        self._path = self._held = None


def read(run: Path) -> StoredProgress | None:
    """Read the progress of the run in the folder `run`, which may have been killed.

    Return None if the run has ended or its progress file is not readable.
    """
    path = run / NAME
    while True:
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                progress = _progress().validate_json(file.read())
                if not file_lock.lock(file.fileno(), fcntl.LOCK_SH):
                    return StoredProgress(progress, is_live=True)
                if file_lock.is_file_at(file.fileno(), path):
                    return StoredProgress(progress, is_live=False)
        except (OSError, ValueError):
            return None


def is_running(run: Path) -> bool:
    """Return True if a live process executes the run in the folder `run`."""
    reported = read(run)
    return reported is not None and reported.is_live


def running_runs(runs: Path) -> list[Path]:
    """Return the folders of all runs below `runs` that are being executed, the latest last."""
    return [run.path for run in sorted(Run.all(runs), key=lambda run: run.id) if is_running(run.path)]


def run_on_machine(state: Path = STATE, journals: Path = JOURNALS) -> Path | None:
    """Return the folder of the run that holds this machine's lease. The folder may not exist yet.

    Return None without such a run, or without permission to read its journal.
    """
    owner = machine_lease.holder("machine", state)
    return undo_journal.run_path(owner.rpartition(" ")[2], journals) if owner else None
