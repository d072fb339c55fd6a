# SPDX-License-Identifier: Apache-2.0
"""Paths of a lab: built programs, the machine's state, and one lab's state."""

from dataclasses import dataclass
from pathlib import Path

from roundabout.core import paths
from roundabout.runner.machine.state import STATE
from roundabout.testbeds.lab.errors import LabError

BUILD = paths.ROOT / "build"
LABS = STATE / "labs"
BPF = STATE / "bpf"
SHARE_INSIDE = STATE / "ssh"  # where a host sees its lab's share folder
SETTINGS_INSIDE = STATE / "settings"  # a host's journal of settings
HOST_PREFIX = STATE / "host"  # where programs are deployed on a host


@dataclass(frozen=True)
class LabPaths:
    """The files of the lab `name`."""

    name: str

    @property
    def root(self) -> Path:
        """Return the lab's folder, 0700. The holder of its lock may change the lab."""
        return LABS / self.name

    @property
    def record(self) -> Path:
        """Return the file that describes the lab."""
        return self.root / "lab.json"

    @property
    def pins(self) -> Path:
        """Return the lab's folder on the bpffs."""
        return BPF / "labs" / self.name

    @property
    def ports_map(self) -> Path:
        """Return the pinned map of port counters."""
        return self.pins / "ports"

    @property
    def share(self) -> Path:
        """Return the folder that hosts see at SHARE_INSIDE."""
        return self.root / "share"

    @property
    def ssh_config(self) -> Path:
        """Return the configuration that makes `ssh -F <this> HOST` work."""
        return self.root / "ssh_config"

    @property
    def key(self) -> Path:
        """Return the private key that opens the lab's hosts."""
        return self.root / "key"

    @property
    def known_hosts(self) -> Path:
        """Return the file with the hosts' public key."""
        return self.root / "known_hosts"

    @property
    def control(self) -> Path:
        """Return the folder of SSH's control sockets, which must not outlive the lab."""
        return self.root / "control"

    def pid_file(self, node: str) -> Path:
        """Return the pid file of a host or switch, which its init holds locked."""
        return self.root / "nodes" / f"{node}.pid"


def is_built(name: str) -> bool:
    """Return True if the program `name` is built."""
    return (BUILD / "bin" / name).exists()


def program_path(name: str) -> Path:
    """Return the path of the built program `name`.

    Raises:
        LabError: it is not built.
    """
    return _built(BUILD / "bin" / name)


def bpf_object_path(name: str) -> Path:
    """Return the path of the built eBPF object `name`.

    Raises:
        LabError: it is not built.
    """
    return _built(BUILD / "bpf" / f"{name}.bpf.o")


def _built(path: Path) -> Path:
    if not path.exists():
        raise LabError(f"{path} is not there: the lab's programs are not built", paths.BUILD)
    return path
