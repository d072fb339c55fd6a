# SPDX-License-Identifier: Apache-2.0
"""Locks on folders, held by an open descriptor, so that the kernel releases them when the holder dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roundabout.runner.machine.state import make_state


@contextmanager
def lock_folder(folder: Path, *, wait_s: float = 0, create: bool = False) -> Iterator[int]:
    """Hold `folder`'s lock by the yielded descriptor. A child that inherits it holds the lock too, until it ends.

    A folder that is replaced while we wait is locked anew.

    Raises:
        BlockingIOError: someone else holds it, and did not let go within `wait_s`.
        FileNotFoundError: there is no such folder, and `create` is false.
    """
    descriptor = _open_locked(folder, time.monotonic() + wait_s, create=create)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_locked(folder: Path, deadline: float, *, create: bool) -> int:
    while True:
        try:
            if create:
                make_state(folder)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if create:
                continue
            raise
        try:
            _lock(descriptor, deadline)
        except BaseException:
            os.close(descriptor)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                return descriptor
        os.close(descriptor)


def _lock(descriptor: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.002)
