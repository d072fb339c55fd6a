# SPDX-License-Identifier: Apache-2.0
"""Paths of built programs, of the machine's state for labs, and of one lab's files."""

from dataclasses import dataclass
from pathlib import Path

from roundabout.core import paths
from roundabout.runner.machine.state import ROOT_STATE
from roundabout.testbeds.lab.errors import LabError

BUILD = paths.ROOT / "build"
LABS = ROOT_STATE / "labs"
BPF = ROOT_STATE / "bpf"
SHARE_INSIDE = ROOT_STATE / "ssh"  # path of the lab's share folder inside a host
SETTINGS_INSIDE = ROOT_STATE / "settings"  # folder of the settings journal inside a host
HOST_PREFIX = ROOT_STATE / "host"  # folder for programs inside a host


@dataclass(frozen=True)
class LabPaths:
    """The paths of the files of the lab `name`."""

    name: str

    @property
    def root(self) -> Path:
        """Return the lab's folder, with mode 0700. Changing the lab requires the folder's lock."""
        return LABS / self.name

    @property
    def record(self) -> Path:
        """Return the path of lab.json, which describes the lab."""
        return self.root / "lab.json"

    @property
    def pins(self) -> Path:
        """Return the lab's folder on the bpffs."""
        return BPF / "labs" / self.name

    @property
    def ports_map(self) -> Path:
        """Return the path of the pinned map of port counters."""
        return self.pins / "ports"

    @property
    def faults_map(self) -> Path:
        """Return the path of the pinned map of links' losses. It exists if the lab's links can lose packets."""
        return self.pins / "faults"

    @property
    def share(self) -> Path:
        """Return the folder that is visible inside hosts as SHARE_INSIDE."""
        return self.root / "share"

    @property
    def ssh_config(self) -> Path:
        """Return the path of the SSH configuration, for `ssh -F`."""
        return self.root / "ssh_config"

    @property
    def key(self) -> Path:
        """Return the path of the private key for logins on the lab's hosts."""
        return self.root / "key"

    @property
    def known_hosts(self) -> Path:
        """Return the path of the file with the hosts' public key."""
        return self.root / "known_hosts"

    @property
    def control(self) -> Path:
        """Return the folder of SSH's control sockets. They are removed with the lab."""
        return self.root / "control"

    def pid_file(self, node: str) -> Path:
        """Return the path of a node's pid file, which the node's init process locks."""
        return self.root / "nodes" / f"{node}.pid"


def is_built(name: str) -> bool:
    """Return True if the program `name` is built."""
    return (BUILD / "bin" / name).exists()


def program_path(name: str) -> Path:
    """Return the path of the built program `name`. Raises LabError if it is not built."""
    return _built(BUILD / "bin" / name)


def bpf_object_path(name: str) -> Path:
    """Return the path of the built eBPF object `name`. Raises LabError if it is not built."""
    return _built(BUILD / "bpf" / f"{name}.bpf.o")


def _built(path: Path) -> Path:
    if not path.exists():
        raise LabError(f"{path} is not there: the lab's programs are not built", paths.BUILD)
    return path
