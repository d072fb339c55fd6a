# SPDX-License-Identifier: Apache-2.0
"""Fabrics of switches above servers, as GPU clusters have them, at 400 Gbit/s.

All links of a fabric have the same rate, its payload is what headers leave at the MTU of RoCE's largest packets, and
flows are spread by ECMP. A server with several NICs has one on each rail.
"""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import yaml

from roundabout.core.errors import UsageError
from roundabout.spec.frames import payload_share
from roundabout.spec.reader.yaml_source import dump
from roundabout.spec.topology import RATES, Link, Topology

LINE_RATE_GBPS = 400
MTU_BYTES = 4200  # 4096 bytes of RoCE's payload, and headers
SERVERS_PER_LEAF = 8
NICS_PER_SERVER = 8
WIDTH = 120  # of written lines
SERVERS_PER_UNIT = 32  # servers below one set of rail switches; DGX SuperPOD's scalable unit with H100


class Fabric(NamedTuple):
    """Hosts by the switch that they are linked to, links between switches, and a sentence about them.

    A host below several leaves has a NIC for each.
    """

    about: str
    leaves: dict[str, list[str]]
    uplinks: list[tuple[str, str]]

    @property
    def nics(self) -> dict[str, list[str]]:
        """Return the leaves of each host, in the order of its NICs."""
        found: dict[str, list[str]] = {}
        for leaf, hosts in self.leaves.items():
            for host in hosts:
                found.setdefault(host, []).append(leaf)
        return found

    @property
    def routing(self) -> str:
        """Return the name of the routing: by rails where hosts have several NICs."""
        return "rail" if max(map(len, self.nics.values())) > 1 else "ecmp"

    def topology(self, name: str) -> Topology:
        """Return the fabric as a topology of that name. The first uplink is the one that reports are about."""
        switches = dict.fromkeys((*self.leaves, *(end for ends in self.uplinks for end in ends)))
        nics = max(map(len, self.nics.values()))
        links: list[dict[str, Any]] = [
            {"name": f"{host}-{nic}" if nics > 1 else host, "ends": [host, leaf]}
            for host, leaves in self.nics.items()
            for nic, leaf in enumerate(leaves)
        ]
        links += [{"name": f"{lower}-{upper}", "ends": [lower, upper]} for lower, upper in self.uplinks]
        links[-len(self.uplinks)]["bottleneck"] = True
        return Topology.model_validate(
            {
                "name": name,
                "about": self.about,
                "line_rate_gbps": LINE_RATE_GBPS,
                "payload_rate_gbps": int(LINE_RATE_GBPS * payload_share(MTU_BYTES)),
                "mtu_bytes": MTU_BYTES,
                "queue": "lossless",
                "routing": {"name": self.routing},
                "hosts": list(self.nics),
                "switches": list(switches),
                "gpus_per_host": nics,
                "links": links,
            }
        )


def leaf_spine(servers: int, oversubscription: int) -> Fabric:
    """Return a leaf-spine of `servers` hosts, 8 a leaf. Each leaf has one link to each spine.

    Leaves have `oversubscription` times as many hosts as links to spines. Raises UsageError if that does not divide.
    """
    uplinks = _uplinks(SERVERS_PER_LEAF, oversubscription)
    leaves = {f"leaf{number}": hosts for number, hosts in enumerate(_chunks(_hosts(servers), SERVERS_PER_LEAF))}
    about = f"{servers} servers below {len(leaves)} leaves, {oversubscription}:1, and {uplinks} spines"
    return Fabric(about, leaves, [(leaf, f"spine{spine}") for leaf in leaves for spine in range(uplinks)])


def fat_tree(servers: int, oversubscription: int) -> Fabric:
    """Return the fat tree of `servers` hosts that k-ary switches form (Al-Fares et al., SIGCOMM 2008, section 3).

    Raises UsageError if `servers` is not k^3/4 for an even k, or if `oversubscription` is not 1.
    """
    ports = next(ports for ports in count(2, 2) if ports**3 // 4 >= servers)
    if ports**3 // 4 != servers:
        sizes = ", ".join(str(each**3 // 4) for each in range(max(ports - 4, 2), ports + 3, 2))
        raise UsageError(f"--servers: found {servers}, expected k^3/4 of a fat tree, for an even k: {sizes}, ...")
    if oversubscription != 1:
        raise UsageError(f"--oversubscription: found {oversubscription}, expected 1: a fat tree has full bisection")
    half = ports // 2
    edges = [f"edge{pod}-{number}" for pod in range(ports) for number in range(half)]
    up = [(edge, f"agg{place // half}-{number}") for place, edge in enumerate(edges) for number in range(half)]
    up += [
        (f"agg{pod}-{number}", f"core{number * half + core}")
        for pod in range(ports)
        for number in range(half)
        for core in range(half)
    ]
    about = f"{servers} servers in a fat tree of switches with {ports} ports"
    return Fabric(about, dict(zip(edges, _chunks(_hosts(servers), half), strict=True)), up)


def rail_optimized(servers: int, oversubscription: int) -> Fabric:
    """Return a pod of `servers` with 8 GPUs and NICs each, whose NIC of number r is linked to rail switch r.

    Link s3-5 is that of NIC 5 of server 3. Up to 32 servers share a set of rail switches, and each of these has one
    link to each spine. Links inside a server (NVLink) are not a part of it. Raises UsageError if `oversubscription`
    does not divide the servers of a unit.
    """
    below = min(servers, SERVERS_PER_UNIT)
    uplinks = _uplinks(below, oversubscription)
    leaves = {
        f"rail{unit}-{rail}": of_unit
        for unit, of_unit in enumerate(_chunks(_hosts(servers), below))
        for rail in range(NICS_PER_SERVER)
    }
    about = (
        f"{servers} servers of {NICS_PER_SERVER} GPUs with a NIC each below {len(leaves)} rail switches, "
        f"{oversubscription}:1, and {uplinks} spines; link s3-5 is that of NIC 5 of server 3"
    )
    return Fabric(about, leaves, [(leaf, f"spine{spine}") for leaf in leaves for spine in range(uplinks)])


FABRICS: dict[str, Callable[[int, int], Fabric]] = {
    "leaf-spine": leaf_spine,
    "fat-tree": fat_tree,
    "rail-optimized": rail_optimized,
}


def write_topology(topology: Topology) -> str:
    """Return a topology as YAML, one link a line."""
    rates = {name: getattr(topology, name) for name in RATES}
    fields = {
        "schema": topology.schema_version,
        **topology.model_dump(mode="json", exclude_defaults=True, exclude={"routing", "hosts", "switches", "links"}),
        **{name: int(rate) if rate.is_integer() else rate for name, rate in rates.items()},
    }
    lists = topology.model_dump(mode="json", exclude_defaults=True, include={"routing", "hosts", "switches"})
    links = [_write_link(each, rates) for each in topology.links]
    return "".join(
        (
            dump(fields, WIDTH),
            *(f"{name}: {_flow(value)}" for name, value in lists.items()),
            "links:\n",
            *(f"  - {_flow(link)}" for link in links),
        )
    )


def _write_link(link: Link, rates: dict[str, float]) -> dict[str, Any]:
    """Return a link's fields, without rates that are the topology's."""
    common = {name for name, rate in rates.items() if getattr(link, name) == rate}
    return link.model_dump(mode="json", exclude_defaults=True, exclude=common)


def _flow(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=WIDTH, default_flow_style=True)


def _hosts(servers: int) -> list[str]:
    return [f"s{number}" for number in range(servers)]


def _chunks(hosts: list[str], size: int) -> list[list[str]]:
    return [hosts[first : first + size] for first in range(0, len(hosts), size)]


def _uplinks(below: int, oversubscription: int) -> int:
    if below % oversubscription:
        divisors = ", ".join(str(each) for each in range(1, below + 1) if below % each == 0)
        raise UsageError(f"--oversubscription: found {oversubscription}, expected a divisor of {below}: {divisors}")
    return below // oversubscription
