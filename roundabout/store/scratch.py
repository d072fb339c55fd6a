# SPDX-License-Identifier: Apache-2.0
"""Temporary folders and crash logs of this program. `roundabout clean` removes those of dead processes.

The process that created a folder keeps a file in it locked. The kernel releases the lock when the process dies.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roundabout.core import file_lock
from roundabout.store import files

LOCK = ".roundabout.lock"
FOLDER, LOG = re.compile(r"roundabout-[a-z]+-[a-z0-9_]{8}"), re.compile(r"roundabout-crash-[a-z0-9_]{8}\.log")
KEPT_LOGS = 10  # limit of crash logs for each user; adding one deletes older ones


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """Yield a new folder for temporary files. The folder is removed at the end of the block."""
    path, lock = _make_locked(purpose)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def write_crash_log(text: str) -> Path:
    """Write a crash log to a new file and return its path. The file belongs to the caller of sudo. Raises OSError."""
    handle, name = tempfile.mkstemp(prefix="roundabout-crash-", suffix=".log")
    with os.fdopen(handle, "w") as log:
        files.return_to_caller(log.fileno())
        log.write(text)
    logs = sorted(_crash_logs(), key=lambda path: path.lstat().st_mtime_ns)
    for path in logs[:-KEPT_LOGS]:
        path.unlink(missing_ok=True)
    return Path(name)


def remove_dead() -> Iterator[Path]:
    """Remove temporary folders of dead processes, and all crash logs. Yield each removed path."""
    for path in _ours(FOLDER, stat.S_ISDIR):
        with suppress(OSError), _hold_lock(path) as is_dead:
            if is_dead:
                shutil.rmtree(path)
                yield path
    for path in _crash_logs():
        path.unlink(missing_ok=True)
        yield path


def _make_locked(purpose: str) -> tuple[Path, int]:
    """Make a folder, and return it with its lock. Children that inherit descriptors hold the lock until they end."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"roundabout-{purpose}-"))
        with suppress(FileNotFoundError):  # `clean` removed the folder before it was locked
            lock = file_lock.open_locked(path / LOCK, _create_lock)
            if lock is not None:
                os.set_inheritable(lock, True)
                return path, lock


def _create_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _hold_lock(path: Path) -> Iterator[bool]:
    """Hold a folder's lock, unless a living process does. Raises OSError for a folder without our lock file."""
    lock = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield file_lock.lock(lock, fcntl.LOCK_EX)
    finally:
        os.close(lock)


def _crash_logs() -> Iterator[Path]:
    return _ours(LOG, stat.S_ISREG)


def _ours(name: re.Pattern[str], is_kind: Callable[[int], bool]) -> Iterator[Path]:
    """Yield the files of that name and kind that belong to this user, or to the caller of sudo."""
    owners = {os.geteuid(), int(os.environ.get("SUDO_UID", "-1")) if os.geteuid() == 0 else -1}
    for path in sorted(Path(tempfile.gettempdir()).glob("roundabout-*")):
        with suppress(FileNotFoundError):
            about = path.lstat()
            if name.fullmatch(path.name) and is_kind(about.st_mode) and about.st_uid in owners:
                yield path
