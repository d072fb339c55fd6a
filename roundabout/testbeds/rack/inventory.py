# SPDX-License-Identifier: Apache-2.0
"""Model of a rack's inventory: an Ansible inventory in YAML, which is checked before any machine is contacted.

Hosts, switches and links have the names that topologies use. The inventory maps them to machines, NICs and switch
ports. Users, keys and jump hosts belong in the SSH configuration, and secrets in ansible-vault.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from roundabout.core.paths import ROOT
from roundabout.settings.settings_nic import DCQCN_RULES
from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.base import Name, NodeName, Positive, Strict, Text, Tuple, drop_defaults
from roundabout.spec.errors import SpecError
from roundabout.spec.reader.yaml_source import Block, Document, dotted_path, load_yaml, read_document, shown_path
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Ecn as Thresholds

SWITCH_ROLE = ROOT / "ansible/roles/switches"
SWITCH_SYSTEMS = (*sorted(path.stem for path in (SWITCH_ROLE / "vars").glob("*.yml")), "unmanaged")
"""Systems of switches. Each that the playbooks support has a file of variables."""
CHANGED_SYSTEMS = frozenset(path.parent.name for path in SWITCH_ROLE.glob("templates/*/apply.j2"))
"""Systems of switches that the playbooks can change. The others are only compared."""

SECRET = re.compile(r"pass|secret|token|private_key", re.IGNORECASE)
ECT0 = 2  # ECN bits of a ToS byte: ECN-capable transport


def _ipv4(text: str) -> str:
    expected = "a host's IPv4 address with its prefix length (8 to 32), as in 10.10.0.1/24"
    if ":" in text:
        raise ValueError(f"{expected}; IPv6 is not supported: give the NIC an IPv4 address, too, such as a /31")
    try:
        interface = IPv4Interface(text)
    except ValueError:
        raise ValueError(expected) from None
    network = interface.network
    has_broadcast = network.prefixlen < 31  # RFC 3021: both addresses of a /31 are hosts'
    reserved = (network.network_address, network.broadcast_address) if has_broadcast else ()
    if "/" not in text or network.prefixlen < 8 or interface.ip in reserved:
        raise ValueError(expected)
    return text


def _ipv4_prefix(text: str) -> str:
    try:
        prefix = IPv4Network(text)
    except ValueError:
        prefix = IPv4Network("0.0.0.0/0")
    if prefix.prefixlen < 8:
        raise ValueError("an IPv4 prefix (8 to 32) as `ip route` shows it, as in 10.10.0.0/16")
    return str(prefix)


def _router_address(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise ValueError("a switch's IPv4 address, as in 10.10.255.1") from None


def _switch_system(text: str) -> str:
    if text not in SWITCH_SYSTEMS:
        raise ValueError(f"one of {', '.join(SWITCH_SYSTEMS)}")
    return text


def _matching(pattern: str, expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(expected)
        return text

    return AfterValidator(check)


# These patterns exclude texts that a command could read as an option, or that a shell could interpret.
SshAlias = Annotated[str, _matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", "a host name or an alias of ssh_config")]
User = Annotated[str, _matching(r"[a-z_][a-z0-9_-]{0,31}", "a user's name")]
Hca = Annotated[str, _matching(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}:[1-9]", "an RDMA device and its port, as in mlx5_0:1")]
# Linux limits an interface's name to 15 characters. `all` and `default` are sysctls of every interface, `lo` is local.
Nic = Annotated[
    str, _matching(r"(?!(lo|all|default)$)[A-Za-z0-9][A-Za-z0-9._-]{0,14}", "a network interface, as in ens1f0np0")
]
SwitchPort = Annotated[str, _matching(r"[A-Za-z0-9][A-Za-z0-9/:._-]{0,31}", "a port as the switch calls it")]
SwitchPlatform = Annotated[
    str, _matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "a platform, as in x86_64-mlnx_msn2700-r0")
]
SwitchRelease = Annotated[
    str, _matching(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}", "a release in quotes, as in '202311.553318-0a1b2c3d4'")
]
AbsolutePath = Annotated[str, _matching(r"/[A-Za-z0-9._/-]{1,200}", "an absolute path without blanks")]
UserPath = Annotated[str, _matching(r"[~/][A-Za-z0-9._/-]{1,200}", "a path that begins with / or ~")]
Address = Annotated[str, StringConstraints(max_length=64), AfterValidator(_ipv4)]
Prefix = Annotated[str, StringConstraints(max_length=18), AfterValidator(_ipv4_prefix)]
RouterAddress = Annotated[str, StringConstraints(max_length=15), AfterValidator(_router_address)]
Cpus = Annotated[str, _matching(r"[0-9,-]{1,200}( [0-9,-]{1,200}){0,511}", "lists of CPUs, as in 0-7 or 0 1 2 3")]
RouteTable = Annotated[int, Field(ge=1, le=2**32 - 1)]
Priority = Annotated[int, Field(ge=0, le=7)]
Dscp = Annotated[int, Field(ge=0, le=63)]
Cells = Annotated[int, Field(ge=1, le=10**6)]


class LosslessClasses(Strict):
    """The priorities and DSCPs of RoCE packets and CNPs, in NICs and switches.

    Sources: docs/reference/rack/sources.md.
    """

    priority: Priority = 3
    dscp: Dscp = 26
    cnp_priority: Priority = 6
    cnp_dscp: Dscp = 48

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.priority == self.cnp_priority or self.dscp == self.cnp_dscp:
            raise ValueError("CNPs in a priority and with a DSCP of their own")
        return self

    @property
    def tos(self) -> int:
        """Return the ToS byte of RoCE packets: the DSCP and ECT(0)."""
        return self.dscp << 2 | ECT0


class Rates(Strict):
    """The line rate and payload rate of a link, in Gbit/s."""

    line_rate_gbps: Positive
    payload_rate_gbps: Positive

    @model_validator(mode="after")
    def _payload_fits(self) -> Self:
        if self.payload_rate_gbps > self.line_rate_gbps:
            raise ValueError("a payload rate no higher than the line rate")
        return self


class Emulated(Strict):
    """The rack that this inventory's machines emulate. Links have the emulated rates divided by `scale`."""

    by: Text
    scale: Annotated[float, Field(ge=1, le=1e6)]
    dilation: Annotated[float, Field(ge=1, le=1e4)] = 1.0  # factor of all times

    @model_validator(mode="after")
    def _no_more_bytes(self) -> Self:
        if self.dilation > self.scale:
            raise ValueError("a dilation no higher than the scale")
        return self


USERS_SSH_CONFIG = "~/.ssh/config"
"""Default of SSH's configuration file, which a user need not have; `ssh -F` would refuse an absent one."""


class CommonVars(Rates):
    """The variables that hosts and switches share."""

    ssh_config: UserPath = USERS_SSH_CONFIG
    lease_host: SshAlias | None = None  # must be the same in every user's inventory; default: the first server
    link_rates: Annotated[dict[Name, Rates], Field(max_length=1000, default_factory=dict)]
    emulated: Emulated | None = None
    lossless: LosslessClasses = LosslessClasses()
    cross_traffic_dscp: Dscp = 0  # DSCP of cross traffic in its own class; default: best effort

    @model_validator(mode="after")
    def _cross_traffic_apart(self) -> Self:
        # NICs map a DSCP without a mapping to the priority of its upper three bits.
        if self.cross_traffic_dscp >> 3 in (self.lossless.priority, self.lossless.cnp_priority):
            taken = f"{self.lossless.priority} and {self.lossless.cnp_priority}"
            raise ValueError(f"a cross_traffic_dscp whose upper three bits are not {taken}, the priorities of RoCE")
        return self

    @property
    def scale(self) -> float:
        """Return the divisor of rates: that of `emulated`, else 1."""
        return self.emulated.scale if self.emulated else 1.0

    @property
    def dilation(self) -> float:
        """Return the factor of times: that of `emulated`, else 1."""
        return self.emulated.dilation if self.emulated else 1.0

    def rates(self, link: str) -> Rates:
        """Return the rates of `link`, or the inventory's common rates if the link has none of its own."""
        common = Rates(line_rate_gbps=self.line_rate_gbps, payload_rate_gbps=self.payload_rate_gbps)
        return self.link_rates.get(link, common)


class Dcqcn(Strict):
    """DCQCN's parameters of NICs between trials, as in docs/reference/settings.md. Omitted ones are not changed."""

    T_us: int | None = None
    byte_counter_bytes: int | None = None
    F: int | None = None
    R_AI_mbps: int | None = None
    R_HAI_mbps: int | None = None
    R_min_mbps: int | None = None
    R_max_mbps: int | None = None
    Gd_log2: int | None = None
    min_decrease_factor_percent: int | None = None
    g_code: int | None = None
    alpha_timer_us: int | None = None
    rate_reduce_period_us: int | None = None
    alpha_initial: float | None = None
    clamp_target_rate: int | None = None
    clamp_target_rate_after_timer: int | None = None
    rate_on_first_cnp_mbps: int | None = None
    cnp_gap_us: int | None = None

    @field_validator("*")
    @classmethod
    def _as_nics_take_it(cls, value: float | None, info: ValidationInfo) -> float | None:
        rule = DCQCN_RULES[str(info.field_name)]
        if value is not None and not rule.accepts(value):
            raise ValueError(rule.expected)
        return value


class Nccl(Strict):
    """Settings of NCCL on every server (docs/how-to/training.md). NCCL chooses omitted ones."""

    algorithm: Literal["Ring", "Tree"] | None = None
    gid_index: Annotated[int, Field(ge=0, le=255)] | None = None  # NCCL finds the index itself since version 2.21


class Servers(Strict):
    """The common variables of all servers."""

    ansible_user: User = "root"
    ansible_become: bool = True  # false: programs run as `ansible_user`, and settings are only compared
    roundabout_prefix: AbsolutePath = "/opt/roundabout"
    roundabout_state: AbsolutePath = "/var/lib/roundabout"
    versions: Literal["today", "cassini-2024", "cross-traffic-2021"] = "today"
    driver: Literal["inbox", "ofed"]
    gpu: Literal["none", "check", "install"] = "none"  # jobs that replay a profile need no GPU
    clock: Literal["chrony", "ptp", "leave"] = "leave"
    mtu_bytes: Annotated[int, Field(ge=1280, le=9978)]
    cable_length_m: Annotated[int, Field(ge=1, le=999)] | None = None
    pfc_prevention_ms: Annotated[int, Field(ge=80, le=8000)] | None = (
        None  # time of pausing after which a NIC drops packets
    )
    link_timeout_s: Annotated[int, Field(ge=1, le=600)] = 15  # wait for a link to come up again
    set_speed: bool = False  # true: the link's speed is set; false: it is only compared
    pfc_only: bool = False  # true: PFC of all other priorities is turned off; false: it stays as found
    governor: Literal["performance", "leave"] = "performance"
    irq_cpus: Cpus | None = None
    dcqcn: Dcqcn = Dcqcn()
    dcqcn_in_nv_config: bool = False
    nccl: Nccl = Nccl()
    # Prefixes of the servers' routes to each other; default: the subnets of their addresses.
    data_routes: Annotated[Tuple[Prefix], Field(max_length=1024)] = ()
    shared_nic: bool = False  # true: NICs may also carry SSH, the default route and file systems

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop defaults, so that trial keys hashed before the fields existed stay valid."""
        unsaid = {"data_routes": [], "link_timeout_s": 15, "set_speed": False, "pfc_only": False, "shared_nic": False}
        return drop_defaults({**unsaid, "ansible_become": True}, handler(self))

    @model_validator(mode="after")
    def _user_is_ordinary(self) -> Self:
        if self.ansible_user == "root" and not self.ansible_become:
            raise _located(("ansible_user",), "root with ansible_become: false", "an ordinary user")
        return self


class Machine(Strict):
    """A machine that is reached by SSH."""

    ansible_host: SshAlias


class ServerNic(Strict):
    """A NIC of a server, and the address on its link."""

    nic: Nic
    address: Address
    link: Name
    hca: Hca | None = None  # RDMA device and port of the NIC, for NCCL; default: as found
    table: RouteTable | None = None  # routing table of packets from the address; default: main

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop a default, so that trial keys hashed before the field existed stay valid."""
        return drop_defaults({"table": None}, handler(self))

    @property
    def ipv4(self) -> IPv4Interface:
        """Return the address with its network."""
        return IPv4Interface(self.address)


class OneNicServer(ServerNic, Machine):
    """A server with one NIC, whose fields are the server's own."""

    @property
    def nics(self) -> tuple[ServerNic, ...]:
        """Return the server's NIC."""
        return (self,)


class SeveralNicsServer(Machine):
    """A server with a NIC on each of several links."""

    nics: Annotated[Tuple[ServerNic], Field(min_length=1, max_length=16)]


def _server_kind(server: Any) -> str:
    is_several = "nics" in server if isinstance(server, Mapping) else isinstance(server, SeveralNicsServer)
    return "<several NICs>" if is_several else "<one NIC>"


Server = OneNicServer | SeveralNicsServer
AnyServer = Annotated[
    Annotated[OneNicServer, Tag("<one NIC>")] | Annotated[SeveralNicsServer, Tag("<several NICs>")],
    Discriminator(_server_kind),
]


class Ecn(Strict):
    """The marking thresholds of a switch in cells, and the cells that it may receive after it sent a pause."""

    cell_bytes: Annotated[int, Field(ge=16, le=4096)]
    Kmin_cells: Cells
    Kmax_cells: Cells
    Pmax_percent: Annotated[int, Field(ge=1, le=100)]
    pfc_skid_cells: Cells | None = None  # for Tofino; other systems compute headroom
    queue_cells: Cells | None = None  # for Junos, whose thresholds are percentages of this length

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.Kmin_cells < self.Kmax_cells <= (self.queue_cells or self.Kmax_cells):
            raise ValueError("Kmin_cells below Kmax_cells, and both within queue_cells")
        return self

    def is_(self, requested: Thresholds) -> bool:
        """Return True if these thresholds equal `requested`, which is rounded to cells."""
        pairs = ((self.Kmin_cells, requested.Kmin_bytes), (self.Kmax_cells, requested.Kmax_bytes))
        near = all(abs(cells * self.cell_bytes - wanted) <= self.cell_bytes for cells, wanted in pairs)
        return near and self.Pmax_percent == round(100 * requested.Pmax)

    def __str__(self) -> str:
        kmin, kmax = self.Kmin_cells * self.cell_bytes, self.Kmax_cells * self.cell_bytes
        return f"Kmin_bytes={kmin} Kmax_bytes={kmax} Pmax={self.Pmax_percent / 100:g}"


class Switches(Strict):
    """The common variables of all switches.

    `ansible_user`, `system` and `ecn` are those of the switches that give none themselves. Roundabout neither contacts
    nor changes a switch whose system is `unmanaged`.
    """

    ansible_user: User = "admin"
    system: Annotated[str, AfterValidator(_switch_system)]
    confirm_minutes: Annotated[int, Field(ge=1, le=60)] = 5
    ecn: Ecn | None = None  # may be omitted if all switches are unmanaged, or give their own
    cable_length_m: Annotated[int, Field(ge=1, le=1000)] | None = (
        None  # a length for which the switch has a headroom profile
    )
    pfc: bool | None = None  # false: only ECN, as on routers; default: true
    pfc_watchdog: bool | None = None  # support depends on release and platform; default: false
    routing_engines: Annotated[int, Field(ge=1, le=2)] | None = None  # two need a synchronized commit; default: 1

    @model_validator(mode="after")
    def _watchdog_has_something_to_watch(self) -> Self:
        if self.pfc_watchdog and self.pfc is False:
            raise ValueError("pfc_watchdog with PFC only")
        return self


# Field of `Switches` -> the only system that uses the field, and True if the field is required there.
OF_ONE_SYSTEM = {
    "cable_length_m": ("sonic", True),
    "pfc": ("junos", False),
    "pfc_watchdog": ("junos", False),
    "routing_engines": ("junos", False),
}
ECN_OF_ONE_SYSTEM = {"pfc_skid_cells": ("tofino", True), "queue_cells": ("junos", True)}


class TestedSystem(Strict):
    """A switch's platform and release, as the switch names them, on which changes and their undoing were tested."""

    platform: SwitchPlatform
    release: SwitchRelease


class Switch(Strict):
    """A switch: a machine or some of its ports, and the link on each port.

    `addresses` are those from which it answers when a packet's time to live ends, as routers do. `ansible_user`,
    `system` and `ecn` replace those of `Switches`; the system `unmanaged` leaves this switch to its owner.
    """

    ansible_host: SshAlias | None = None  # may be omitted if the switch is unmanaged
    ansible_user: User | None = None
    system: Annotated[str, AfterValidator(_switch_system)] | None = None
    ecn: Ecn | None = None
    addresses: Annotated[Tuple[RouterAddress], Field(max_length=1024)] = ()
    apply_on: TestedSystem | None = None  # None: the switch is only compared, never changed
    ports: Annotated[dict[Name, SwitchPort], Field(min_length=1, max_length=512)]

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop defaults, so that trial keys hashed before the fields existed stay valid."""
        unsaid: dict[str, Any] = {"addresses": [], **dict.fromkeys(("ansible_host", "ansible_user", "system", "ecn"))}
        return drop_defaults(unsaid, handler(self))


class ServerGroup(Strict):
    """The inventory's group `rack`: servers with their common variables."""

    vars: Servers
    hosts: Annotated[dict[NodeName, AnyServer], Field(min_length=2, max_length=512)]


class SwitchGroup(Strict):
    """The inventory's group `switches`: switches with their common variables."""

    vars: Switches
    hosts: Annotated[dict[NodeName, Switch], Field(min_length=1, max_length=64)]


class Groups(Strict):
    """The inventory's two groups, `rack` and `switches`."""

    rack: ServerGroup
    switches: SwitchGroup


class All(Strict):
    """Ansible's group `all`: common variables and the groups of machines."""

    vars: CommonVars
    children: Groups


Location = tuple[str | int, ...]


class _Unique(NamedTuple):
    """A value that must occur once, and its location."""

    value: str
    location: Location


class HostNic(NamedTuple):
    """A NIC of a host, with its location in the inventory.

    Its name is the host's, with the interface if the host has several NICs, as in `s0 ens1f0np0`. Its rail is its
    number among the host's NICs, from 0.
    """

    name: str
    host: str
    rail: int
    nic: ServerNic
    location: Location

    @property
    def address(self) -> str:
        """Return the IPv4 address without its prefix length."""
        return str(self.nic.ipv4.ip)


class Inventory(Strict):
    """The complete inventory of a rack."""

    all: All

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        for what, places in (
            ("a machine's NIC", self._nics()),
            ("an address", self._addresses()),
            ("a host's link", self._host_links()),
            ("a switch's port", self._switch_ports()),
            ("a host's or switch's name", self._names()),
        ):
            seen: dict[str, Location] = {}
            for place in places:
                if place.value in seen:
                    found = f"'{place.value}' a second time (first in {dotted_path(seen[place.value])})"
                    raise _located(place.location, found, f"{what} once")
                seen[place.value] = place.location
        self._check_network()
        self._check_tables()
        self._check_links()
        self._check_managed()
        self._check_system()
        self._check_ports()
        return self

    @property
    def ssh_config(self) -> Path:
        """Return SSH's configuration file, for `ssh -F`: an empty one if the user has none and none is named."""
        path = Path(self.all.vars.ssh_config).expanduser()
        return path if self.all.vars.ssh_config != USERS_SSH_CONFIG or path.exists() else Path(os.devnull)

    @property
    def servers(self) -> Mapping[str, Server]:
        """Return the servers, by host."""
        return self.all.children.rack.hosts

    @property
    def switches(self) -> Mapping[str, Switch]:
        """Return the switches by name."""
        return self.all.children.switches.hosts

    @property
    def common(self) -> Servers:
        """Return the common variables of the servers."""
        return self.all.children.rack.vars

    @property
    def lease_host(self) -> str:
        """Return the SSH alias of the machine that stores the leases of all users."""
        return self.all.vars.lease_host or next(iter(self.servers.values())).ansible_host

    @cached_property
    def ends(self) -> dict[str, tuple[str, ...]]:
        """Return the two end nodes of each link, by link."""
        found: dict[str, tuple[str, ...]] = {each.nic.link: (each.host,) for each in self._all_nics}
        for name, switch in self.switches.items():
            for link in switch.ports:
                found[link] = (*found.get(link, ()), name)
        return found

    def system_of(self, switch: str) -> str:
        """Return the system of `switch`, or `unmanaged`."""
        return self.switches[switch].system or self.all.children.switches.vars.system

    def user_of(self, switch: str) -> str:
        """Return the user of SSH on `switch`."""
        return self.switches[switch].ansible_user or self.all.children.switches.vars.ansible_user

    def ecn_of(self, switch: str) -> Ecn | None:
        """Return the marking thresholds of `switch`, or None if an unmanaged switch has none."""
        return self.switches[switch].ecn or self.all.children.switches.vars.ecn

    def machine_of(self, switch: str) -> str:
        """Return the SSH alias of `switch`, or its name if an unmanaged switch has no alias."""
        return self.switches[switch].ansible_host or switch

    @cached_property
    def nics(self) -> Mapping[str, HostNic]:
        """Return the NICs of all hosts, by their names."""
        return {each.name: each for each in self._all_nics}

    @cached_property
    def _all_nics(self) -> tuple[HostNic, ...]:
        """Return the NICs of all hosts, also those with the same name, which the inventory refuses."""
        return tuple(each for host in self.servers for each in self.nics_of(host))

    def nics_of(self, host: str) -> list[HostNic]:
        """Return the NICs of a host, in the order of rails."""
        server = self.servers[host]
        if isinstance(server, OneNicServer):
            return [HostNic(host, host, 0, server, _server(host))]
        return [
            HostNic(f"{host} {nic.nic}", host, rail, nic, (*_server(host), "nics", rail))
            for rail, nic in enumerate(server.nics)
        ]

    def switch_of(self, nic: HostNic) -> str:
        """Return the switch at the other end of a NIC's link."""
        return self.ends[nic.nic.link][1]

    def nics_on(self, topology: Topology, host: str) -> list[HostNic]:
        """Return the NICs of a host on its links of a topology, in the order of these links."""
        return [self._nic_at[link.name] for link in topology.links_of(host)]

    @cached_property
    def _nic_at(self) -> dict[str, HostNic]:
        return {each.nic.link: each for each in self.nics.values()}

    def rail_peers(self, own: HostNic) -> list[HostNic]:
        """Return the NICs of other hosts on the rail of a NIC."""
        return [each for each in self.nics.values() if each.rail == own.rail and each.host != own.host]

    def _nics(self) -> Iterator[_Unique]:
        for each in self._all_nics:
            yield _Unique(f"{self.servers[each.host].ansible_host} {each.nic.nic}", (*each.location, "nic"))

    def _addresses(self) -> Iterator[_Unique]:
        for each in self._all_nics:
            yield _Unique(each.address, (*each.location, "address"))
        for name, switch in self.switches.items():
            for index, address in enumerate(switch.addresses):
                yield _Unique(address, (*_switch(name), "addresses", index))

    def _host_links(self) -> Iterator[_Unique]:
        for each in self._all_nics:
            yield _Unique(each.nic.link, (*each.location, "link"))

    def _switch_ports(self) -> Iterator[_Unique]:
        for name, switch in self.switches.items():
            for link, port in switch.ports.items():
                yield _Unique(f"{self.machine_of(name)} {port}", (*_switch(name), "ports", link))

    def _names(self) -> Iterator[_Unique]:
        for name in self.servers:
            yield _Unique(name, _server(name))
        for name in self.switches:
            yield _Unique(name, _switch(name))

    def data_routes(self, own: ServerNic, peers: Iterable[HostNic]) -> list[str]:
        """Return the routes by which a NIC reaches its peers, the most specific first, as targets of settings."""
        known = {own.ipv4.network, *self._data_prefixes}
        lengths = {prefix.prefixlen for prefix in known}
        around = {IPv4Network((peer.address, length), strict=False) for peer in peers for length in lengths}
        table = "" if own.table is None else f" table {own.table}"
        in_order = sorted(known & around, key=lambda prefix: (-prefix.prefixlen, prefix))
        return [f"{prefix}{table}" for prefix in in_order]

    @cached_property
    def _data_prefixes(self) -> frozenset[IPv4Network]:
        given = [IPv4Network(prefix) for prefix in self.common.data_routes]
        return frozenset(given or (each.nic.ipv4.network for each in self.nics.values()))

    def _check_network(self) -> None:
        routes = [IPv4Network(prefix) for prefix in self.common.data_routes]
        for each in self._all_nics if routes else ():
            if not any(each.nic.ipv4.ip in prefix for prefix in routes):
                place = ("all", "children", "rack", "vars", "data_routes")
                found = f"{', '.join(map(str, routes))} without {each.address} of {each.name}"
                raise _located(place, found, "prefixes that contain every server's address")

    def _check_tables(self) -> None:
        """Refuse two NICs of a server with one route: packets from both addresses would leave by the same NIC."""
        seen: set[tuple[str, IPv4Network, int | None]] = set()
        for each in self._all_nics:
            route = each.host, each.nic.ipv4.network, each.nic.table
            if route in seen:
                found = f"'{each.nic.address}', in the subnet of another NIC"
                expected = "another subnet, or `table`: a routing table of packets from this address alone"
                raise _located((*each.location, "address"), found, expected)
            seen.add(route)

    def _check_links(self) -> None:
        for each in self._all_nics:
            if len(self.ends[each.nic.link]) == 1:
                raise _located((*each.location, "link"), f"'{each.nic.link}', which no switch has", "a link in a port")
        for name, switch in self.switches.items():
            for link in switch.ports:
                if len(self.ends[link]) != 2:
                    found = f"link '{link}' with {len(self.ends[link])} end(s): {', '.join(self.ends[link])}"
                    expected = "two: a server's NIC and a switch's port, or ports of two switches"
                    raise _located((*_switch(name), "ports", link), found, expected)
        for link in self.all.vars.link_rates:
            if link not in self.ends:
                raise _located(("all", "vars", "link_rates", link), f"'{link}'", "a link in a port of a switch")

    def _check_managed(self) -> None:
        for name, switch in self.switches.items():
            system = self.system_of(name)
            if system == "unmanaged":
                if switch.apply_on:
                    raise _located((*_switch(name), "apply_on"), "one", "none, as an unmanaged switch is never changed")
            elif switch.apply_on and system not in CHANGED_SYSTEMS:
                raise _located((*_switch(name), "apply_on"), "one", f"none, as {system} is compared only")
            elif switch.ansible_host is None:
                raise _located((*_switch(name), "ansible_host"), "no ansible_host", "one, or system: unmanaged")
            elif self.ecn_of(name) is None:
                location = ("all", "children", "switches", "vars", "ecn")
                raise _located(location, "no ecn", f"one, as {system} needs it")

    def _check_system(self) -> None:
        switches, place = self.all.children.switches.vars, ("all", "children", "switches", "vars")
        own = {name: switch.ecn for name, switch in self.switches.items() if switch.ecn}
        others = self.switches.keys() - own
        _check_fields(switches, OF_ONE_SYSTEM, place, {switches.system, *map(self.system_of, self.switches)})
        _check_fields(switches.ecn, ECN_OF_ONE_SYSTEM, (*place, "ecn"), {*map(self.system_of, others)})
        for name, ecn in own.items():
            _check_fields(ecn, ECN_OF_ONE_SYSTEM, (*_switch(name), "ecn"), {self.system_of(name)})

    def _check_ports(self) -> None:
        for name, switch in self.switches.items():
            system = self.system_of(name)
            for link, port in switch.ports.items() if system != "unmanaged" else ():
                allowed = _port_form(system)
                if not re.fullmatch(allowed["pattern"], port):
                    expected = f"a port's name in {system}: {allowed['form']}"
                    raise _located((*_switch(name), "ports", link), f"'{port}'", expected)


def _check_fields(
    given: Strict | None, rules: Mapping[str, tuple[str, bool]], place: Location, systems: Collection[str]
) -> None:
    """Refuse a field of `given` that no switch of `systems` uses, and a missing one that a switch requires."""
    for name, (system, required) in rules.items() if given else ():
        found = getattr(given, name)
        if found is None and required and system in systems:
            raise _located((*place, name), f"no {name}", f"one, as {system} needs it")
        if found is not None and system not in systems:
            expected = f"it left out: only {system} has a use for it, and the switches are {', '.join(sorted(systems))}"
            raise _located((*place, name), str(found), expected)


@cache
def _port_form(system: str) -> Mapping[str, str]:
    """Return the form of a port's name in a system of switches: a pattern, and words."""
    form: Mapping[str, str] = load_yaml(SWITCH_ROLE / f"vars/{system}.yml").root["switches_port"]
    return form


def read_inventory(path: Path) -> Inventory:
    """Read the inventory in `path`. Raises SpecError for the first fault."""
    document = read_document(path, shown_path(path))
    _refuse_secrets(document, document.root, ())
    return parse_as(Inventory, document)


def check_topology(inventory: Inventory, topology: Topology, file: str) -> None:
    """Raise SpecError if the inventory lacks a node or link of the topology, or if rates differ.

    `file` is the inventory's name in the message.
    """
    for node in (*topology.hosts, *topology.switches):
        if node not in inventory.servers and node not in inventory.switches:
            expected = f"a machine for each host and switch of topology {topology.name}"
            raise SpecError(file, f"no {node}", expected)
    for link in topology.links:
        ends = inventory.ends.get(link.name)
        if ends is None or set(ends) != set(link.ends):
            found = f"link {link.name} between {' and '.join(ends)}" if ends else f"no link {link.name}"
            raise SpecError(file, found, f"it between {' and '.join(link.ends)}, as in topology {topology.name}")
        rates = inventory.all.vars.rates(link.name)
        if (rates.line_rate_gbps, rates.payload_rate_gbps) != (link.line_rate_gbps, link.payload_rate_gbps):
            found = f"link {link.name} of {rates.line_rate_gbps:g} Gbit/s, {rates.payload_rate_gbps:g} of payload"
            expected = f"{link.line_rate_gbps:g} and {link.payload_rate_gbps:g}, as in topology {topology.name}"
            raise SpecError(file, found, expected, hint="run it on a topology with this rack's rates")


def _server(name: str) -> Location:
    return ("all", "children", "rack", "hosts", name)


def _switch(name: str) -> Location:
    return ("all", "children", "switches", "hosts", name)


def _located(location: Location, found: str, expected: str) -> PydanticCustomError:
    return PydanticCustomError("located", "{expected}", {"location": location, "found": found, "expected": expected})


def _refuse_secrets(document: Document, block: Block, location: tuple[str, ...]) -> None:
    """Refuse a password, because an inventory is copied into results."""
    for key, value in block.items():
        if SECRET.search(key):
            hint = "ansible-vault create group_vars/all/secrets.yml, beside the inventory"
            raise document.error((*location, key), f"the secret '{key}'", "secrets in a vault", hint=hint)
        if isinstance(value, Block):
            _refuse_secrets(document, value, (*location, key))
