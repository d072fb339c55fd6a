# SPDX-License-Identifier: Apache-2.0
"""Leases: one at a time on a machine, since lab hosts share its CPU, and since only one may settle what is owed.

A lease is a lock on a file (flock), which the kernel gives back when its holder dies, however it dies. What the file
says is for people.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.state import open_private, tidy

DYING_S = 20.0  # what a killed holder had started may still be at work
LOOK_S = 0.05


class BusyError(RoundaboutError):
    """Somebody else holds the lease."""


@contextmanager
def hold(what: str, owner: str, state: Path, *, wait_s: float = 0) -> Iterator[None]:
    """Hold the lease on `what` ("machine"). Raises BusyError, which names the holder: after `wait_s` if that one lives.

    Children that are started with `close_fds=False` hold it along, until they end: nobody undoes what a dead holder's
    children are still at.
    """
    path = state / "leases" / what
    handle = _locked_in_the_end(what, path, wait_s)
    try:
        os.set_inheritable(handle, True)
        content = {"owner": owner, "pid": os.getpid(), "started_utc": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(content).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
        tidy(path.parent)


def holder(what: str, state: Path) -> str:
    """Who holds the lease and lives; empty where nobody does, or only root could say."""
    path = state / "leases" / what
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        said = _said(path)
        return str(said["owner"]) if _lives(said.get("pid")) else ""
    finally:
        os.close(handle)
    return ""


def _locked_in_the_end(what: str, path: Path, wait_s: float) -> int:
    begun_s = time.monotonic()
    while (handle := _lock(path)) is None:
        said = _said(path)
        lives = _lives(said.get("pid"))
        if time.monotonic() - begun_s > (wait_s if lives else max(wait_s, DYING_S)):
            who = f"{said['owner']} (pid {said['pid']}, since {said['started_utc']})" if said else "somebody"
            dead = "" if lives else "; that ended, but not what it had started"
            raise BusyError(f"the {what} is leased to {who}{dead}", "wait until that ends, or stop it")
        time.sleep(LOOK_S)
    return handle


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


def _said(path: Path) -> dict[str, Any]:
    """What its holder wrote; empty where that one is just starting."""
    try:
        content = json.loads(path.read_text())
        return {name: content[name] for name in ("owner", "pid", "started_utc")}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _lives(pid: int | None) -> bool:
    """Whether there is such a process, and it has not ended but for its parent's noticing."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
