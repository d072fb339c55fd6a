# SPDX-License-Identifier: Apache-2.0
"""Groups of hosts reached over SSH: the hosts and links of a testbed, and their capabilities.

Code that controls hosts depends on capabilities, never on the kind of testbed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from roundabout.runner.fidelity import Fidelity

if TYPE_CHECKING:
    from fabric import Connection

    from roundabout.spec import TrialSpec
    from roundabout.spec.link_events import LinkState

Capability = Literal["rdma", "pfc", "priorities", "own clock"]
JSON = Any


@dataclass(frozen=True)
class Nccl:
    """The devices of a host that NCCL shall use, besides the interface. None leaves the choice to NCCL."""

    hca: str | None = None  # the NIC's RDMA device and port, such as mlx5_0:1
    algorithm: str | None = None
    gid_index: int | None = None


class Nic(NamedTuple):
    """An interface on the network under test, and its IPv4 address."""

    interface: str
    address: str


@dataclass(frozen=True)
class Host:
    """A machine that runs workers, or a network namespace that stands for one."""

    name: str
    ssh_alias: str
    address: str  # IPv4, on the network under test
    prefix_length: int
    interface: str
    prefix: Path  # folder on the host for this project's programs
    tap: str | None = None  # interface for captures if it is not `interface`
    nccl: Nccl = field(default_factory=Nccl)
    further_nics: tuple[Nic, ...] = ()  # NICs behind the first, whose interface and address are those above

    @property
    def nics(self) -> tuple[Nic, ...]:
        """Return the host's NICs, in the order of the host's links."""
        return (Nic(self.interface, self.address), *self.further_nics)

    def by_nic(self) -> "tuple[Host, ...]":
        """Return this host once for each NIC, with that NIC alone."""
        first = replace(self, further_nics=())
        others = (replace(first, interface=nic.interface, address=nic.address, tap=None) for nic in self.further_nics)
        return (first, *others)


@dataclass(frozen=True)
class Port:
    """A switch's port, which sends into a link. Rates are in the papers' units."""

    switch: str
    link: str
    interface: str
    ifindex: int
    towards: str
    line_rate_gbps: float
    payload_rate_gbps: float


class DscpClasses(NamedTuple):
    """The DSCPs of packets of jobs without a priority, and of cross traffic."""

    jobs: int = 0
    cross_traffic: int = 0


class EchoTimes(NamedTuple):
    """The marks whose echoes were measured since the hosts exist, and the time that they took together, us on hosts."""

    echoes: int = 0
    total_us: float = 0.0

    def since(self, before: "EchoTimes") -> "EchoTimes":
        """Return what was measured after `before`."""
        return EchoTimes(self.echoes - before.echoes, self.total_us - before.total_us)


class QueueCounters(NamedTuple):
    """The counters of one queue of a switch's port, by the store's columns of ports' queues."""

    port: str  # the switch's name for it
    queue: int
    counters: Mapping[str, int]  # those that are known


class QueueAnswer(NamedTuple):
    """The queues in a switch's answer, and remarks about what it lacks, what is not understood, and what is old."""

    queues: list[QueueCounters]
    remarks: frozenset[str]


class PortPlace(NamedTuple):
    """The link that a switch's port feeds, and the host or switch at the link's other end."""

    link: str
    towards: str


@dataclass(frozen=True)
class QueueReader:
    """A reader of the queues of one switch: a command on the controller, which answers until its stdin ends."""

    argv: tuple[str, ...]
    request: str  # the input that each answer follows
    last_line: str  # the last line of each answer, which is none of its others
    parse: Callable[[str], QueueAnswer]
    ports: Mapping[str, PortPlace]  # by the switch's names


class Scaling(Protocol):
    """The scaling of a testbed's rates and times against the papers'."""

    @property
    def scale(self) -> float:
        """Return the divisor of rates."""
        ...

    @property
    def dilation(self) -> float:
        """Return the factor of times. The divisor of bytes is scale / dilation."""
        ...

    def bytes_on_host(self, paper_bytes: int) -> int:
        """Convert the papers' bytes to bytes on hosts."""
        return round(paper_bytes * self.dilation / self.scale)

    def ms_on_host(self, paper_ms: float) -> float:
        """Convert the papers' milliseconds to milliseconds on hosts."""
        return paper_ms * self.dilation

    def rate_on_host_bps(self, paper_gbps: float) -> float:
        """Convert the papers' Gbit/s to bit/s on hosts."""
        return paper_gbps * 1e9 / self.scale


class FullScale(Scaling):
    """The papers' own rates and times."""

    scale = dilation = 1.0


class HostGroup(Scaling, Protocol):
    """An existing testbed of hosts that are reached over SSH."""

    @property
    def kind(self) -> str:
        """Return the kind of testbed for display. Code must use `capabilities` instead."""
        ...

    @property
    def name(self) -> str:
        """Return the name of this group, which is unique within its kind."""
        ...

    @property
    def fidelity(self) -> Fidelity:
        """Return the statement of the group's fidelity."""
        ...

    @property
    def hosts(self) -> Mapping[str, Host]:
        """Return the hosts by name, in the topology's order."""
        ...

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return the switch ports that can be sampled."""
        ...

    @property
    def dscps(self) -> DscpClasses:
        """Return the DSCPs of packets of jobs without priorities and of cross traffic."""
        ...

    @property
    def switch_addresses(self) -> Mapping[str, str] | None:
        """Return the switch of each address from which switches answer, or None if this project sets their routes."""
        ...

    @property
    def settings_state(self) -> Path | None:
        """Return the folder on every host for the journal of `settings.py`, or None if it may not change settings."""
        ...

    def identity(self) -> dict[str, JSON]:
        """Return all properties that can make results of two groups differ. They are part of every trial's key."""
        ...

    def capabilities(self) -> frozenset[Capability]:
        """Return the group's capabilities beyond TCP, such as `rdma`."""
        ...

    def ssh_config(self) -> Path:
        """Return the path of the group's SSH configuration, for `ssh -F`."""
        ...

    def connect(self, host: str) -> "Connection":
        """Return a connection to `host` that is not open yet."""
        ...

    def settings_document(self, trial: "TrialSpec", host: str) -> dict[str, JSON]:
        """Return the input of `settings.py apply` on `host` for `trial`, in the host's units."""
        ...

    def prepare(self, trial: "TrialSpec") -> None:
        """Configure the switches for the trial. Raises RoundaboutError if this project may not configure them."""
        ...

    def read_back(self, trial: "TrialSpec") -> list[str]:
        """Return a line for each switch setting that differs from what `prepare` set.

        Return an empty list if this project may not read the switches.
        """
        ...

    def set_link(self, trial: "TrialSpec", link: str, state: "LinkState") -> None:
        """Set the losses and the rate of a link during the trial. Raises RoundaboutError if this is not possible."""
        ...

    def set_routes(self, trial: "TrialSpec", failed: frozenset[str]) -> None:
        """Let the routes of the trial avoid failed links. Raises RoundaboutError if this is not possible."""
        ...

    def count_lost(self, links: Iterable[str]) -> dict[str, int]:
        """Return how many packets each of these links has lost by events so far, as far as that is known."""
        ...

    def echo_times(self) -> EchoTimes:
        """Return how long marks took to come back to their senders. Zero if this project may not read the switches."""
        ...

    def switch_samplers(self) -> list[list[str]]:
        """Return one command for each switch, which runs on the controller and samples the switch's ports.

        Return an empty list if this project may not read the switches.
        """
        ...

    def queue_readers(self) -> Mapping[str, QueueReader | str]:
        """Return a reader of queues by switch, or the reason why there is none.

        Return no switch if `switch_samplers` sample all.
        """
        ...
