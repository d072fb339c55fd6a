# SPDX-License-Identifier: Apache-2.0
"""Locks on the lab's folders."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roundabout.core import locks
from roundabout.runner.machine.state import make_state

LOOK_S = 0.002


@contextmanager
def lock_folder(folder: Path, *, wait_s: float = 0, create: bool = False) -> Iterator[int]:
    """Hold `folder`'s lock by the yielded descriptor. A child that inherits it holds the lock too, until it ends.

    A folder that is replaced while we wait is locked anew.

    Raises:
        BlockingIOError: someone else holds it, and did not let go within `wait_s`.
        FileNotFoundError: there is no such folder, and `create` is false.
    """
    deadline = time.monotonic() + wait_s
    while (descriptor := locks.open_locked(folder, _create if create else _open)) is None:
        if time.monotonic() > deadline:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(folder))
        time.sleep(LOOK_S)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _create(folder: Path) -> int:
    while True:
        make_state(folder)
        with suppress(FileNotFoundError):  # another process removed the folder in between
            return _open(folder)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
