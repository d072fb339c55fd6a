# SPDX-License-Identifier: Apache-2.0
"""Locks on the lab's folders."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roundabout.core import file_lock
from roundabout.runner.machine.state import make_state

LOOK_S = 0.002


@contextmanager
def lock_folder(folder: Path, *, wait_s: float = 0, create: bool = False) -> Iterator[int]:
    """Hold the lock of `folder` and yield its descriptor. A child that inherits the descriptor also holds the lock.

    If the folder is replaced during the wait, the new folder is locked.

    Raises:
        BlockingIOError: another process held the lock for `wait_s`.
        FileNotFoundError: the folder does not exist, and `create` is False.
    """
    deadline = time.monotonic() + wait_s
    while (descriptor := file_lock.open_locked(folder, _create if create else _open)) is None:
        if time.monotonic() > deadline:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(folder))
        time.sleep(LOOK_S)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _create(folder: Path) -> int:
    while True:
        with suppress(FileNotFoundError):  # another process removed the folder in between
            make_state(folder)
            return _open(folder)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
