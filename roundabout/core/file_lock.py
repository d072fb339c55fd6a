# SPDX-License-Identifier: Apache-2.0
"""Locks on files and folders (flock), held by an open descriptor.

The kernel releases a lock when its last descriptor is closed, also when the holder dies. A child that inherits the
descriptor holds the lock too, until the child ends.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def lock(handle: int, kind: int) -> bool:
    """Take a lock of `kind` (flock's LOCK_SH or LOCK_EX) on an open file without waiting. Return True on success."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_file_at(handle: int, path: Path) -> bool:
    """Return True if `path` still names the open file `handle`, so the file was neither removed nor replaced."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def open_locked(path: Path, open_path: Callable[[Path], int]) -> int | None:
    """Open `path` by `open_path` and lock it without waiting. Return None if another process holds the lock.

    A holder may remove or replace the file between our open and our lock. The file at `path` is then opened again,
    because others would not see a lock on the old one.
    """
    while True:
        handle = open_path(path)
        try:
            is_locked = lock(handle, fcntl.LOCK_EX)
            if is_locked and is_file_at(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if not is_locked:
            return None
