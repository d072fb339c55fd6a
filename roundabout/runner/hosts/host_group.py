# SPDX-License-Identifier: Apache-2.0
"""Sites: the hosts and links of a testbed that is reached over SSH, and what they can do.

The way over SSH asks for that, never for the kind of testbed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from roundabout.runner.fidelity import Fidelity

if TYPE_CHECKING:
    from fabric import Connection

    from roundabout.spec import TrialSpec

Capability = Literal["rdma", "pfc", "priorities", "own clock"]
JSON = Any


@dataclass(frozen=True)
class Nccl:
    """What trainers over NCCL use on a host, beside its interface; None leaves it to NCCL."""

    hca: str | None = None  # the NIC's RDMA device and its port, as in mlx5_0:1
    algorithm: str | None = None
    gid_index: int | None = None


@dataclass(frozen=True)
class Host:
    """A machine that runs workers, or what stands for one."""

    name: str
    ssh_alias: str
    address: str  # IPv4, on the network under test
    prefix_length: int
    interface: str
    prefix: Path  # where our programs are deployed, on the host
    tap: str | None = None  # the interface that captures listen at, where it is not `interface`
    nccl: Nccl = field(default_factory=Nccl)


@dataclass(frozen=True)
class Port:
    """Where a switch sends into a link. Rates are at the papers' scale."""

    switch: str
    link: str
    interface: str
    ifindex: int
    towards: str
    line_rate_gbps: float
    payload_rate_gbps: float


class Dscps(NamedTuple):
    """The classes that packets ride in, by DSCP: jobs without a priority of their own, and cross traffic apart."""

    jobs: int = 0
    cross_traffic: int = 0


class Pace(Protocol):
    """How a testbed's rates and times differ from the papers'."""

    @property
    def scale(self) -> float:
        """By how much rates are divided."""
        ...

    @property
    def dilation(self) -> float:
        """By how much times are stretched; bytes are divided by scale / dilation."""
        ...

    def bytes_on_host(self, paper_bytes: int) -> int:
        """Bytes at the papers' scale -> bytes that hosts really send."""
        return round(paper_bytes * self.dilation / self.scale)

    def ms_on_host(self, paper_ms: float) -> float:
        """A time of the papers' -> how long hosts really take for it."""
        return paper_ms * self.dilation

    def rate_on_host_bps(self, paper_gbps: float) -> float:
        """Gbit/s at the papers' scale -> bit/s that hosts really send."""
        return paper_gbps * 1e9 / self.scale


class Site(Pace, Protocol):
    """A testbed of hosts that are reached over SSH, while it stands."""

    @property
    def kind(self) -> str:
        """For people to read; code asks `capabilities` instead."""
        ...

    @property
    def name(self) -> str:
        """Which site of its kind."""
        ...

    @property
    def fidelity(self) -> Fidelity:
        """How real what is measured there is."""
        ...

    @property
    def hosts(self) -> Mapping[str, Host]:
        """The hosts by name, in the topology's order."""
        ...

    @property
    def ports(self) -> tuple[Port, ...]:
        """The switch ports that can be observed."""
        ...

    @property
    def dscps(self) -> Dscps:
        """Of packets, where an experiment gives jobs no priorities."""
        ...

    @property
    def settings_state(self) -> Path:
        """Where `settings.py` keeps its journal, on every host."""
        ...

    def identity(self) -> dict[str, JSON]:
        """What makes two sites give different results; part of every trial's key."""
        ...

    def capabilities(self) -> frozenset[Capability]:
        """What it can do beyond carrying TCP."""
        ...

    def ssh_config(self) -> Path:
        """The file for `ssh -F`."""
        ...

    def connect(self, host: str) -> "Connection":
        """A connection to a host, not yet open."""
        ...

    def settings_document(self, trial: "TrialSpec", host: str) -> dict[str, JSON]:
        """What `settings.py apply` gets on `host` for `trial`, in the host's units."""
        ...

    def prepare(self, trial: "TrialSpec") -> None:
        """Let switches do what the trial asks of them, or raise RoundaboutError where that is not ours to change."""
        ...

    def read_back(self, trial: "TrialSpec") -> list[str]:
        """What of switches is not as `prepare` made it, a line each; none where they are not ours to ask."""
        ...

    def switch_samplers(self) -> list[list[str]]:
        """Commands for the controller, one a switch, that sample its ports; none where switches are not ours to ask."""
        ...

    def port_at(self, ifindex: int) -> Port:
        """The port that samplers call `ifindex`."""
        ...
