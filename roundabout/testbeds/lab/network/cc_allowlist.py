# SPDX-License-Identifier: Apache-2.0
"""The kernel's list of congestion controls that other network namespaces may use.

The list is machine-wide. Therefore users of an entry are counted, like users of this project's transports.
"""

from pathlib import Path

from roundabout.runner.machine.state import ROOT_STATE
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.lifecycle.locks import lock_folder

SYSCTLS = Path("/proc/sys/net/ipv4")
USERS = "allowed"
ADDED = ".added"  # suffix of a file: the entry was not in the list before its first user
LOCK_TIMEOUT_S = 10.0


def allow(name: str, owner: str) -> None:
    """Allow the congestion control `name` until `owner` disallows it. Raises LabError if the kernel lacks it."""
    known = loaded_congestion_controls()
    if name not in known:
        raise LabError(
            f"this kernel has no congestion control {name!r}", f"it has {', '.join(known)}; modprobe tcp_{name}"
        )
    with lock_folder(ROOT_STATE, wait_s=LOCK_TIMEOUT_S, create=True):
        users = ROOT_STATE / USERS / name
        users.mkdir(parents=True, exist_ok=True)
        (users / owner).touch()
        allowed = _words("tcp_allowed_congestion_control")
        if name not in allowed:
            (users / ADDED).touch()
            _write([*allowed, name])


def disallow(name: str, owner: str) -> None:
    """End the use of `name` by `owner`. After the last user, restore the list's original state."""
    users = ROOT_STATE / USERS / name
    if not users.is_dir():
        return
    with lock_folder(ROOT_STATE, wait_s=LOCK_TIMEOUT_S):
        (users / owner).unlink(missing_ok=True)
        if {path.name for path in users.iterdir()} - {ADDED}:
            return
        if (users / ADDED).exists():
            _write([word for word in _words("tcp_allowed_congestion_control") if word != name])
            (users / ADDED).unlink()
        users.rmdir()
        if not any(users.parent.iterdir()):
            users.parent.rmdir()


def loaded_congestion_controls() -> list[str]:
    """Return the names of congestion controls that are available in the running kernel."""
    return _words("tcp_available_congestion_control")


def _words(name: str) -> list[str]:
    return (SYSCTLS / name).read_text().split()


def _write(allowed: list[str]) -> None:
    (SYSCTLS / "tcp_allowed_congestion_control").write_text(" ".join(allowed))
