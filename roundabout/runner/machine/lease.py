# SPDX-License-Identifier: Apache-2.0
"""Leases: only one program at a time uses this machine, because lab hosts share its CPU.

A lease is a lock on a file (flock). The kernel releases it when the holder dies. The file's text names the holder.
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

from roundabout.core import locks
from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.state import open_private, remove_empty

DYING_S = 20.0  # time in which programs that a killed holder started may still run
LOOK_S = 0.05


class BusyError(RoundaboutError):
    """Error for a lease that another process holds."""


@contextmanager
def hold(what: str, owner: str, state: Path, *, wait_s: float = 0) -> Iterator[None]:
    """Hold the lease on `what` ("machine") for the duration of the block.

    Wait up to `wait_s` for another holder, then raise BusyError that names it. Children that were started with
    `close_fds=False` also hold the lease until they end. Therefore no cleanup starts while a dead holder's children
    still work.
    """
    path = state / "leases" / what
    handle = _wait_for_lock(what, path, wait_s)
    try:
        os.set_inheritable(handle, True)
        content = {"owner": owner, "pid": os.getpid(), "started_utc": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(content).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
        remove_empty(path.parent)


def holder(what: str, state: Path) -> str:
    """Return a description of the live holder of `what`. Empty without a holder, or without permission to read it."""
    path = state / "leases" / what
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return ""
    try:
        if locks.lock(handle, fcntl.LOCK_SH):
            return ""
        said = _read_holder(path)
        return str(said["owner"]) if _is_alive(said.get("pid")) else ""
    finally:
        os.close(handle)


def check_free(what: str, state: Path) -> None:
    """Raise BusyError if `what` has a live holder, as `holder` knows it."""
    if who := holder(what, state):
        raise _busy(what, who)


def _busy(what: str, who: str) -> BusyError:
    return BusyError(f"the {what} is leased to {who}", "wait until that ends, or stop it")


def _wait_for_lock(what: str, path: Path, wait_s: float) -> int:
    begun_s = time.monotonic()
    while (handle := locks.open_locked(path, open_private)) is None:
        said = _read_holder(path)
        lives = _is_alive(said.get("pid"))
        if time.monotonic() - begun_s > (wait_s if lives else max(wait_s, DYING_S)):
            who = f"{said['owner']} (pid {said['pid']}, since {said['started_utc']})" if said else "somebody"
            dead = "" if lives else "; that ended, but not what it had started"
            raise _busy(what, f"{who}{dead}")
        time.sleep(LOOK_S)
    return handle


def _read_holder(path: Path) -> dict[str, Any]:
    """Return the text of the lease's holder; empty if it is just starting."""
    try:
        content = json.loads(path.read_text())
        return {name: content[name] for name in ("owner", "pid", "started_utc")}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _is_alive(pid: int | None) -> bool:
    """Return True if the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
