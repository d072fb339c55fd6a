# SPDX-License-Identifier: Apache-2.0
"""Groups of hosts reached over SSH: the hosts and links of a testbed, and their capabilities.

The code that drives hosts asks for capabilities, never for the kind of testbed.
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
    """The devices that trainers over NCCL use on a host, beside its interface. None leaves the choice to NCCL."""

    hca: str | None = None  # the NIC's RDMA device and its port, as in mlx5_0:1
    algorithm: str | None = None
    gid_index: int | None = None


@dataclass(frozen=True)
class Host:
    """A machine that runs workers, or a namespace that stands for one."""

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
    """A switch's port that sends into a link. Rates are at the papers' scale."""

    switch: str
    link: str
    interface: str
    ifindex: int
    towards: str
    line_rate_gbps: float
    payload_rate_gbps: float


class DscpClasses(NamedTuple):
    """The DSCPs of packets: of jobs without a priority of their own, and of cross traffic."""

    jobs: int = 0
    cross_traffic: int = 0


class Scaling(Protocol):
    """The scaling of a testbed's rates and times against the papers'."""

    @property
    def scale(self) -> float:
        """Return the divisor of rates."""
        ...

    @property
    def dilation(self) -> float:
        """Return the factor that times are multiplied by. Bytes are divided by scale / dilation."""
        ...

    def bytes_on_host(self, paper_bytes: int) -> int:
        """Convert bytes at the papers' scale to the bytes that hosts send."""
        return round(paper_bytes * self.dilation / self.scale)

    def ms_on_host(self, paper_ms: float) -> float:
        """Convert a time of the papers to the time that hosts take for it."""
        return paper_ms * self.dilation

    def rate_on_host_bps(self, paper_gbps: float) -> float:
        """Convert Gbit/s at the papers' scale to the bit/s that hosts send."""
        return paper_gbps * 1e9 / self.scale


class HostGroup(Scaling, Protocol):
    """A testbed of hosts reached over SSH, while it exists."""

    @property
    def kind(self) -> str:
        """Return the kind of testbed for people to read. Code asks `capabilities` instead."""
        ...

    @property
    def name(self) -> str:
        """Return the name of this group among those of its kind."""
        ...

    @property
    def fidelity(self) -> Fidelity:
        """Return how real the figures measured there are."""
        ...

    @property
    def hosts(self) -> Mapping[str, Host]:
        """Return the hosts by name, in the topology's order."""
        ...

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return the switch ports that can be observed."""
        ...

    @property
    def dscps(self) -> DscpClasses:
        """Return the DSCPs of packets if an experiment gives jobs no priorities."""
        ...

    @property
    def settings_state(self) -> Path:
        """Return the folder of the journal of `settings.py` on every host."""
        ...

    def identity(self) -> dict[str, JSON]:
        """Return everything that makes two groups give different results; part of every trial's key."""
        ...

    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities beyond TCP."""
        ...

    def ssh_config(self) -> Path:
        """Return the file for `ssh -F`."""
        ...

    def connect(self, host: str) -> "Connection":
        """Return a connection to a host, not yet open."""
        ...

    def settings_document(self, trial: "TrialSpec", host: str) -> dict[str, JSON]:
        """Return the input of `settings.py apply` on `host` for `trial`, in the host's units."""
        ...

    def prepare(self, trial: "TrialSpec") -> None:
        """Configure switches as the trial asks. Raises RoundaboutError if the project may not configure them."""
        ...

    def read_back(self, trial: "TrialSpec") -> list[str]:
        """Return a line for each switch setting that differs from `prepare`; empty if switches may not be asked."""
        ...

    def switch_samplers(self) -> list[list[str]]:
        """Return commands for the controller, one a switch, that sample its ports.

        Empty if switches may not be asked.
        """
        ...

    def port_at(self, ifindex: int) -> Port:
        """Return the port that samplers call `ifindex`."""
        ...
