# SPDX-License-Identifier: Apache-2.0
"""Leases: only one program at a time uses this machine, because lab hosts share its CPU and its kernel.

A lease is a lock on a file (flock), the same for all checkouts. The kernel releases it when the holder dies. The file's
text names the holder.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roundabout.core import file_lock
from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.state import open_private, remove_empty

DYING_S = 20.0  # time in which programs that a killed holder started may still run
LOOK_S = 0.05
QUEUE_S = 3600.0  # longest wait for runs and test sessions that have the machine first
REPORT_S = 60.0  # time between two reports of a program that waits
LENT = "ROUNDABOUT_LEASE"  # environment variable: path of the lease that the caller of this program holds and lends

Report = Callable[[str], None]


class BusyError(RoundaboutError):
    """Error for a lease that another process holds."""


@contextmanager
def hold(what: str, owner: str, state: Path, *, wait_s: float = 0, report: Report = lambda _: None) -> Iterator[None]:
    """Hold the lease on `what` ("machine") for the duration of the block.

    Wait up to `wait_s` for another holder, then raise BusyError that names it. `report` gets a line when the wait
    begins, when the holder changes, and every minute. Children that were started with `close_fds=False` also hold the
    lease until they end. Therefore no cleanup starts while a dead holder's children still work.
    """
    path = _path(what, state)
    handle = _wait_for_lock(_Queue(what, report), path, wait_s)
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


@contextmanager
def lend(what: str, owner: str, state: Path, *, wait_s: float = 0, report: Report = lambda _: None) -> Iterator[None]:
    """Hold a lease as `hold` does, and lend it to this process and its children: they take turns among themselves."""
    with hold(what, owner, state, wait_s=wait_s, report=report):
        before = {name: value for name, value in os.environ.items() if name == LENT}
        os.environ[LENT] = str(state / "leases" / what)
        try:
            yield
        finally:
            del os.environ[LENT]
            os.environ.update(before)


def holder(what: str, state: Path) -> str:
    """Return the name of the live holder of `what`. Empty without a holder, or without permission to read it."""
    return str(_live_holder(_path(what, state)).get("owner", ""))


def wait_until_free(what: str, state: Path, report: Report) -> None:
    """Wait until `what` has no live holder, as `holder` returns it. Raises BusyError after QUEUE_S."""
    queue = _Queue(what, report)
    while content := _live_holder(_path(what, state)):
        queue.wait(_describe(content), QUEUE_S)


class _Queue:
    """One wait for a lease."""

    def __init__(self, what: str, report: Report) -> None:
        self._what, self._report = what, report
        self._begun_s = time.monotonic()
        self._reported, self._next_report_s = "", self._begun_s

    def wait(self, holder: str, longest_s: float) -> None:
        """Sleep for a moment. Raises BusyError if the wait for `holder` has lasted `longest_s`."""
        now_s = time.monotonic()
        if now_s - self._begun_s > longest_s:
            raise BusyError(f"the {self._what} is leased to {holder}", "wait until that ends, or stop it")
        if longest_s and (holder != self._reported or now_s > self._next_report_s):
            left_min = (longest_s - (now_s - self._begun_s)) / 60
            self._report(f"waiting up to {left_min:.0f} min for the {self._what}, which is leased to {holder}")
            self._reported, self._next_report_s = holder, now_s + REPORT_S
        time.sleep(LOOK_S)


def _path(what: str, state: Path) -> Path:
    path = state / "leases" / what
    return path.with_name(f"{what}-lent") if os.environ.get(LENT) == str(path) else path


def _wait_for_lock(queue: _Queue, path: Path, wait_s: float) -> int:
    while (handle := file_lock.open_locked(path, open_private)) is None:
        content = _read_holder(path)
        is_alive = _is_alive(content.get("pid"))
        dead = "" if is_alive or not content else "; that ended, but not what it had started"
        queue.wait(f"{_describe(content)}{dead}", wait_s if is_alive else max(wait_s, DYING_S))
    return handle


def _describe(content: dict[str, Any]) -> str:
    return f"{content['owner']} (pid {content['pid']}, since {content['started_utc']})" if content else "a new holder"


def _live_holder(path: Path) -> dict[str, Any]:
    """Return the text of a lease whose holder lives. Empty without one, or without permission to read it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return {}
    try:
        content = {} if file_lock.lock(handle, fcntl.LOCK_SH) else _read_holder(path)
        return content if _is_alive(content.get("pid")) else {}
    finally:
        os.close(handle)


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
