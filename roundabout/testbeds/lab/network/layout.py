# SPDX-License-Identifier: Apache-2.0
"""The layout of a topology: addresses, ports and interface indices. The functions are pure and deterministic."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network
from itertools import count, permutations

from roundabout.runner.hosts.host_group import Host, Nic, Port
from roundabout.spec.topology import Hop, Link, Topology
from roundabout.testbeds.lab.network import paths

NETWORK = IPv4Network("10.77.0.0/16")
TAP_INTERFACE = "tap0"
BRIDGE_IFINDEX = 2
FIRST_PORT_IFINDEX = 100
FIRST_TABLE = 1000  # of routing tables of hosts' NICs; Linux keeps 253 to 255 for itself
FIRST_HOST_IFINDEX = 10_000  # first interface index of hosts' devices; indices of cables' devices are unique in a lab


def interface(nic: int) -> str:
    """Return the interface of a host's NIC by its number."""
    return f"eth{nic}"


def route_table(nic: int) -> int:
    """Return the number of the routing table of packets from the address of a NIC behind a host's first."""
    return FIRST_TABLE + nic


def route_target(nic: int) -> str:
    """Return the name of the route of a NIC's packets for `settings.py`. That of the first is in the main table."""
    return f"{NETWORK} table {route_table(nic)}" if nic else str(NETWORK)


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link: a device in a node's network namespace."""

    node: str
    interface: str
    ifindex: int
    mac: str


@dataclass(frozen=True)
class HostNic(LinkEnd):
    """The end of a link at a host. `number` counts the host's NICs from 0, in the order of its links."""

    number: int
    address: str


@dataclass(frozen=True)
class Cable:
    """A link as a veth pair. The first end is on a switch."""

    link: Link
    ends: tuple[LinkEnd, LinkEnd]


@dataclass(frozen=True)
class Layout:
    """All names, addresses and numbers needed to build a topology."""

    topology: Topology
    hosts: Mapping[str, Host]
    nics: Mapping[str, tuple[HostNic, ...]]
    cables: tuple[Cable, ...]
    ports: tuple[Port, ...]

    @cached_property
    def far_ends(self) -> Mapping[int, LinkEnd]:
        """Return the link end at which each port's packets arrive, by the port's interface index."""
        pairs = (pair for cable in self.cables for pair in permutations(cable.ends))
        return {near.ifindex: far for near, far in pairs if near.node not in self.hosts}

    @cached_property
    def _ends(self) -> Mapping[tuple[str, str], LinkEnd]:
        return {(cable.link.name, end.node): end for cable in self.cables for end in cable.ends}

    def ifindex_at(self, link: Link, node: str) -> int:
        """Return the interface index of a link's device at `node`."""
        return self._ends[link.name, node].ifindex

    def address_at(self, link: Link, host: str) -> str:
        """Return the address of the host's NIC that a link leads to."""
        nic = self._ends[link.name, host]
        assert isinstance(nic, HostNic)
        return nic.address

    @cached_property
    def links_between(self) -> Mapping[tuple[HostNic, HostNic], tuple[Hop, ...]]:
        """Return the links from one NIC to another of the same number, in order, by (sender, receiver).

        With several paths, these are the links of flows without a route of their own.
        """
        pairs = (
            pair
            for sender, receiver in permutations(self.hosts, 2)
            for pair in zip(self.nics[sender], self.nics[receiver], strict=False)
        )
        return {
            (own, other): self.topology.path(own.node, other.node, nics=(own.number, other.number))
            for own, other in pairs
        }

    @cached_property
    def paths(self) -> Mapping[tuple[HostNic, HostNic], tuple[Port, ...]]:
        """Return the switch ports on the path from one NIC to another, in order, by (sender, receiver)."""
        ports = {(port.switch, port.link): port for port in self.ports}
        return {
            pair: tuple(ports[hop.sender, hop.link.name] for hop in hops[1:])
            for pair, hops in self.links_between.items()
        }

    @cached_property
    def hosts_behind(self) -> Mapping[int, frozenset[str]]:
        """Return the hosts that are reached through each port, by the port's interface index."""
        found: dict[int, set[str]] = {port.ifindex: set() for port in self.ports}
        for (_, receiver), path in self.paths.items():
            for port in path:
                found[port.ifindex].add(receiver.node)
        return {ifindex: frozenset(hosts) for ifindex, hosts in found.items()}


def lay_out(topology: Topology) -> Layout:
    """Return the layout of `topology`. Hosts and ports are numbered in the topology's order, and so are NICs."""
    nics = _nics(topology)
    cables: list[Cable] = []
    ports: list[Port] = []
    for link in topology.links:
        ends: list[LinkEnd] = []
        for node, towards in sorted((link.ends, link.ends[::-1]), key=lambda pair: pair[0] in nics):
            if node in nics:
                ends.append(nics[node][link.name])
                continue
            ifindex = FIRST_PORT_IFINDEX + len(ports)
            device = f"port{ifindex}" if topology.has_parallel_links(*link.ends) else towards
            ends.append(LinkEnd(node, device, ifindex, _mac(2, ifindex)))
            rates = link.line_rate_gbps, link.payload_rate_gbps
            ports.append(Port(node, link.name, device, ifindex, towards, *rates))
        cables.append(Cable(link, (ends[0], ends[1])))
    in_order = {host: tuple(own.values()) for host, own in nics.items()}
    hosts = _hosts(topology, in_order)
    return Layout(topology, hosts, in_order, tuple(cables), tuple(ports))


def _nics(topology: Topology) -> dict[str, dict[str, HostNic]]:
    """Return the NICs of each host by their links. First NICs have the numbers of their hosts, and others follow."""
    numbers = {name: number for number, name in enumerate(topology.hosts, start=1)}
    further = count(len(numbers) + 1)
    found: dict[str, dict[str, HostNic]] = {name: {} for name in topology.hosts}
    for link in topology.links:
        for host in (end for end in link.ends if end in found):
            place = len(found[host])
            number = next(further) if place else numbers[host]
            device = interface(place), FIRST_HOST_IFINDEX + number, _mac(1, number)
            found[host][link.name] = HostNic(host, *device, place, str(NETWORK[number]))
    return found


def _hosts(topology: Topology, nics: Mapping[str, tuple[HostNic, ...]]) -> dict[str, Host]:
    queueing = {end for link in topology.links if link.nic_queue for end in link.ends}
    return {
        name: Host(
            name,
            name,
            first.address,
            NETWORK.prefixlen,
            first.interface,
            paths.HOST_PREFIX,
            TAP_INTERFACE if name in queueing else None,
            further_nics=tuple(Nic(nic.interface, nic.address) for nic in others),
        )
        for name, (first, *others) in nics.items()
    }


def _mac(kind: int, number: int) -> str:
    """Return a locally administered address."""
    return ":".join(f"{octet:02x}" for octet in (0x02, 0x52, kind, *number.to_bytes(3, "big")))
