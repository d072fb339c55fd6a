# SPDX-License-Identifier: Apache-2.0
"""The switches above servers in a queue's fabric: a leaf-spine, rails below spines, or three tiers.

In three tiers each leaf has a link to each aggregation switch of its pod, and each of these to each core switch, as in
MonkeyTree's simulator (hipersys-team/MonkeyTree, src/network/topology.rs).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from roundabout.core.errors import UsageError
from roundabout.models.cluster.job_queue.job_shape import Ints
from roundabout.models.fluid.jobs import Path
from roundabout.spec.topology import Topology


@dataclass(frozen=True)
class Tiers:
    """Three tiers: the pod of each leaf, the number of aggregation switches in a pod, and of core switches."""

    pod_of_leaf: Ints
    aggs: int
    cores: int


class Racks(NamedTuple):
    """The rack of each server: those below the same leaves, between which flows need no other switch.

    In three tiers `pods` has the pod of each rack.
    """

    of_server: Ints
    pods: Ints | None = None


@dataclass(frozen=True)
class Fabric:
    """The leaves of a topology by NIC, server by server, and the switches above them by tier.

    `aggs` has the aggregation switches of each leaf's pod, and is empty without a third tier. `tops` are the spines, or
    the core switches of three tiers.
    """

    leaves: Sequence[str]
    leaf_of_nic: Ints
    nics: int  # of a server
    aggs: Sequence[Sequence[str]]
    tops: Sequence[str]

    @cached_property
    def tiers(self) -> Tiers | None:
        """Return the sizes of three tiers, or None for fewer."""
        if not self.aggs:
            return None
        pods = list(dict.fromkeys(map(tuple, self.aggs)))
        return Tiers(np.array([pods.index(tuple(own)) for own in self.aggs]), len(self.aggs[0]), len(self.tops))

    @cached_property
    def racks(self) -> Racks:
        """Return the racks of servers."""
        of_server = np.unique(self.leaf_of_nic[:: self.nics], return_inverse=True)[1]
        return Racks(of_server, self.tiers.pod_of_leaf if self.tiers else None)

    def path(self, leaf: int, other: int, hops: Sequence[int]) -> Path:
        """Return a path between two leaves over a spine, or over an aggregation switch, a core switch and another.

        Within a pod there is no core switch, whose number is then -1, and the first aggregation switch leads down.
        """
        if not self.aggs:
            nodes = [self.tops[hops[0]]]
        elif hops[1] < 0:
            nodes = [self.aggs[leaf][hops[0]]]
        else:
            nodes = [self.aggs[leaf][hops[0]], self.tops[hops[1]], self.aggs[other][hops[2]]]
        ends = [self.leaves[leaf], *nodes, self.leaves[other]]
        return tuple(pairwise(ends))


def fabric_of(topology: Topology) -> Fabric:
    """Return a topology's leaves and the switches above them. Raises UsageError for another fabric."""
    nics = [topology.first_hop(host, nic).receiver for host in topology.hosts for nic in range(topology.gpus_per_host)]
    leaves = list(dict.fromkeys(nics))
    above = _neighbors(topology)
    first = {leaf: tuple(node for node in above[leaf] if node not in leaves) for leaf in leaves}
    middle = list(dict.fromkeys(node for own in first.values() for node in own))
    cores = [node for node in topology.switches if node not in leaves and node not in middle]
    fabric = Fabric(
        leaves,
        np.array([leaves.index(switch) for switch in nics]),
        topology.gpus_per_host,
        list(first.values()) if cores else [],
        cores or middle,
    )
    _check_links(topology, fabric)
    return fabric


def _neighbors(topology: Topology) -> Mapping[str, list[str]]:
    """Return the switches that each switch has a link to, in the order of the topology's switches."""
    linked: dict[str, set[str]] = {switch: set() for switch in topology.switches}
    for link in topology.links:
        one, other = link.ends
        if one in linked and other in linked:
            linked[one].add(other)
            linked[other].add(one)
    return {switch: [node for node in topology.switches if node in own] for switch, own in linked.items()}


def _check_links(topology: Topology, fabric: Fabric) -> None:
    """Raise UsageError unless there are all links between neighboring tiers, and no others."""
    hosts = set(topology.hosts)
    ups = [frozenset(link.ends) for link in topology.links if not hosts & set(link.ends)]
    if fabric.aggs:
        pods = set(map(tuple, fabric.aggs))
        wanted = {frozenset((leaf, agg)) for leaf, own in zip(fabric.leaves, fabric.aggs, strict=True) for agg in own}
        wanted |= {frozenset((agg, core)) for pod in pods for agg in pod for core in fabric.tops}
        fits = len({agg for pod in pods for agg in pod}) == sum(map(len, pods)) and len(set(map(len, pods))) == 1
    else:
        wanted = {frozenset((leaf, spine)) for leaf in fabric.leaves for spine in fabric.tops}
        fits = bool(wanted)
    if set(ups) != wanted or not fits:
        raise UsageError(
            f"topology {topology.name}: found no leaf-spine, and no three tiers, allowed with a mix trace are a link "
            "from each leaf to each spine, or from each leaf to each aggregation switch of its pod and from these to "
            "each core switch",
            "take a topology like leaf-spine-1024 or three-tier-1024",
        )
