# SPDX-License-Identifier: Apache-2.0
"""The layout of a topology: addresses, ports and interface indices. The functions are pure and deterministic."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network
from itertools import permutations

from roundabout.core.errors import UsageError
from roundabout.runner.hosts.host_group import Host, Port
from roundabout.spec.topology import Hop, Link, Topology
from roundabout.testbeds.lab.network import paths

NETWORK = IPv4Network("10.77.0.0/16")
HOST_INTERFACE = "eth0"
TAP_INTERFACE = "tap0"
BRIDGE_IFINDEX = 2
FIRST_PORT_IFINDEX = 100
FIRST_HOST_IFINDEX = 10_000  # first interface index of hosts' devices; indices of cables' devices are unique in a lab


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link: a device in a node's network namespace."""

    node: str
    interface: str
    ifindex: int
    mac: str


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
    macs: Mapping[str, str]
    cables: tuple[Cable, ...]
    ports: tuple[Port, ...]

    @cached_property
    def ifindexes(self) -> Mapping[str, int]:
        """Return the interface index of every host's device."""
        return {end.node: end.ifindex for cable in self.cables for end in cable.ends if end.node in self.hosts}

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

    @cached_property
    def links_between(self) -> Mapping[tuple[str, str], tuple[Hop, ...]]:
        """Return the links from one host to another, in order, by (sender, receiver).

        With several paths, these are the links of flows without a route of their own.
        """
        return {pair: self.topology.path(*pair) for pair in permutations(self.hosts, 2)}

    @cached_property
    def paths(self) -> Mapping[tuple[str, str], tuple[Port, ...]]:
        """Return the switch ports on the path from one host to another, in order, by (sender, receiver)."""
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
                found[port.ifindex].add(receiver)
        return {ifindex: frozenset(hosts) for ifindex, hosts in found.items()}


def lay_out(topology: Topology) -> Layout:
    """Return the layout of `topology`. Hosts and ports are numbered in the topology's order.

    Raises:
        UsageError: a host has several NICs.
    """
    if topology.has_rails:
        raise UsageError(
            f"topology {topology.name}: found hosts with several NICs, allowed in a lab is one NIC a host",
            "run it with --testbed fluid or packets",
        )
    numbers = {name: number for number, name in enumerate(topology.hosts, start=1)}
    queueing = {end for link in topology.links if link.nic_queue for end in link.ends}
    hosts = {
        name: Host(
            name,
            name,
            str(NETWORK[number]),
            NETWORK.prefixlen,
            HOST_INTERFACE,
            paths.HOST_PREFIX,
            TAP_INTERFACE if name in queueing else None,
        )
        for name, number in numbers.items()
    }
    macs = {name: _mac(1, number) for name, number in numbers.items()}
    cables: list[Cable] = []
    ports: list[Port] = []
    for link in topology.links:
        ends: list[LinkEnd] = []
        for node, towards in sorted((link.ends, link.ends[::-1]), key=lambda pair: pair[0] in hosts):
            if node in hosts:
                ends.append(LinkEnd(node, HOST_INTERFACE, FIRST_HOST_IFINDEX + numbers[node], macs[node]))
                continue
            ifindex = FIRST_PORT_IFINDEX + len(ports)
            interface = f"port{ifindex}" if topology.has_parallel_links(*link.ends) else towards
            ends.append(LinkEnd(node, interface, ifindex, _mac(2, ifindex)))
            rates = link.line_rate_gbps, link.payload_rate_gbps
            ports.append(Port(node, link.name, interface, ifindex, towards, *rates))
        cables.append(Cable(link, (ends[0], ends[1])))
    return Layout(topology, hosts, macs, tuple(cables), tuple(ports))


def _mac(kind: int, number: int) -> str:
    """Return a locally administered address."""
    return ":".join(f"{octet:02x}" for octet in (0x02, 0x52, kind, *number.to_bytes(3, "big")))
