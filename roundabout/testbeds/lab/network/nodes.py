# SPDX-License-Identifier: Apache-2.0
"""Hosts and switches as processes. A node lives as long as its init process labinit, which locks the pid file."""

import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from roundabout.core import file_lock
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network import paths

START_TIMEOUT_S = 10.0
END_TIMEOUT_S = 20.0


def start_all(
    lab: paths.LabPaths, hosts: Iterable[str], switches: Iterable[str], clock_shift_ns: Mapping[str, int]
) -> dict[str, int]:
    """Start an init process for every node in parallel, wait until all are ready, and return their pids by node.

    Hosts in `clock_shift_ns` get a clock of their own, which is ahead of the machine's by this time.

    Raises:
        LabError: a node could not be started.
    """
    host_extra = (str(lab.share), str(paths.BPF))
    shifts = {host: (str(shift_ns),) for host, shift_ns in clock_shift_ns.items()}
    births = {host: _start(lab, "host", host, host_extra + shifts.get(host, ())) for host in hosts}
    births |= {switch: _start(lab, "switch", switch, ()) for switch in switches}
    complaints = [birth.communicate()[1].strip() for birth in births.values()]
    failed = [complaint for birth, complaint in zip(births.values(), complaints, strict=True) if birth.returncode]
    if failed:
        raise LabError(
            f"a lab node could not be made: {failed[0]}",
            "the lab needs Linux namespaces, and root in the machine's own",
        )
    return {node: _read_pid(lab.pid_file(node)) for node in births}


def _start(lab: paths.LabPaths, kind: str, name: str, extra: tuple[str, ...]) -> subprocess.Popen[str]:
    """Start one labinit. It inherits the lock taken here: there is no moment at which a living node looks dead."""
    lock = os.open(lab.pid_file(name), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [str(paths.program_path("labinit")), kind, name, str(lock), *extra]
        return subprocess.Popen(
            command, pass_fds=[lock], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={}
        )
    finally:
        os.close(lock)


def alive_pid(pid_file: Path) -> int | None:
    """Return the pid of a node's init process, or None if the node is dead."""
    try:
        descriptor = os.open(pid_file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _read_pid(pid_file) if _is_locked(descriptor) else None
    finally:
        os.close(descriptor)


def stop_all(pid_files: Iterable[Path]) -> None:
    """Kill the nodes' init processes, and wait until all processes inside the nodes have ended.

    Raises:
        LabError: a process did not end.
    """
    dying = [handle for pid_file in pid_files if (handle := _kill(pid_file)) is not None]
    deadline = time.monotonic() + END_TIMEOUT_S
    try:
        for handle in dying:
            # An init ends only after the last process in its PID namespace.
            if not select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise LabError(
                    f"a node of the lab did not end within {END_TIMEOUT_S:.0f} s",
                    "look for processes in state D with `ps`",
                )
    finally:
        for handle in dying:
            os.close(handle)


def _kill(pid_file: Path) -> int | None:
    """Kill the holder of the pid file, if any; the returned descriptor becomes readable when it is dead."""
    descriptor = os.open(pid_file, os.O_RDONLY)
    try:
        if not _is_locked(descriptor):
            return None
        handle = os.pidfd_open(_read_pid(pid_file))
        # Held still, after the pid became a handle: so the handle is the init, and no recycled pid.
        if not _is_locked(descriptor):
            os.close(handle)
            return None
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return handle
    except ProcessLookupError:
        return None
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    if not file_lock.lock(descriptor, fcntl.LOCK_SH):
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def _read_pid(pid_file: Path) -> int:
    """Return the pid in a held pid file; a node that is just being created has not written it yet."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (text := pid_file.read_text()).endswith("\n"):
        if time.monotonic() > deadline:
            raise LabError(f"{pid_file} is locked, but no pid was written to it within {START_TIMEOUT_S:.0f} s")
        time.sleep(0.002)
    return int(text)
