# SPDX-License-Identifier: Apache-2.0
"""Leases: one experiment at a time on a machine, since lab hosts share its CPU.

A lease is a lock on a file (flock), which the kernel gives back when its holder dies, however it dies. What the file
says is for people.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from roundabout.errors import RoundaboutError
from roundabout.runner.machine.state import open_private, tidy


class BusyError(RoundaboutError):
    """Somebody else holds the lease."""


@contextmanager
def hold(what: str, owner: str, state: Path) -> Iterator[None]:
    """Hold the lease on `what` ("machine"). Raises BusyError, which names the holder, at once."""
    path = state / "leases" / what
    handle = _lock(path)
    if handle is None:
        raise BusyError(f"the {what} is leased to {_holder(path)}", "wait until that ends, or stop it")
    try:
        content = {"owner": owner, "pid": os.getpid(), "started_utc": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(content).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
        tidy(path.parent)


def remove_stale(state: Path) -> list[str]:
    """Remove lease files whose holders died; their names."""
    removed = []
    for path in sorted((state / "leases").glob("*")):
        handle = _lock(path)
        if handle is not None:
            path.unlink(missing_ok=True)
            os.close(handle)
            removed.append(path.name)
    tidy(state / "leases")
    return removed


def _lock(path: Path) -> int | None:
    """An open, locked handle on `path`, or None where somebody else holds the lock."""
    while True:
        handle = open_private(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(path), os.fstat(handle)):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:
            pass
        os.close(handle)  # its holder removed the file between our open and our lock


def _holder(path: Path) -> str:
    try:
        content = json.loads(path.read_text())
        return f"{content['owner']} (pid {content['pid']}, since {content['started_utc']})"
    except (OSError, ValueError, KeyError):
        return "somebody who is just starting"
