# SPDX-License-Identifier: Apache-2.0
"""Locks on folders: held by an open descriptor, so that the kernel frees them when their holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked_folder(folder: Path, *, wait: bool, create: bool = False) -> Iterator[None]:
    """Hold `folder`'s lock. A folder that is replaced while we wait is locked anew.

    Raises:
        BlockingIOError: someone else holds it, and `wait` is false.
        FileNotFoundError: there is no such folder, and `create` is false.
    """
    descriptor = _open_locked(folder, wait=wait, create=create)
    try:
        yield
    finally:
        os.close(descriptor)


def _open_locked(folder: Path, *, wait: bool, create: bool) -> int:
    while True:
        if create:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if create:
                continue
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BaseException:
            os.close(descriptor)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                return descriptor
        os.close(descriptor)
