# SPDX-License-Identifier: Apache-2.0
"""The paths of flows while some of a topology's links have failed and its switches avoid them."""

from collections.abc import Iterator
from functools import cached_property

from roundabout.spec.routing import FiveTuple, Flow
from roundabout.spec.topology import Hop, Topology, count_hops
from roundabout.spec.trial_spec import TrialSpec


class Rerouting:
    """The routing's choice among the links of a topology that have not failed.

    A flow takes a shortest path over these links, on which the same hash as before chooses among the cables that are
    left. So flows may move that had no failed link, as with ECMP that is not resilient. A NIC does not change. A flow
    without a path keeps the topology's.
    """

    def __init__(self, topology: Topology, failed: frozenset[str]) -> None:
        self.failed = failed
        self._topology = topology
        self._distances: dict[str, dict[str, int]] = {}

    def path(self, flow: Flow) -> tuple[Hop, ...]:
        """Return the links from one host to another, in order."""
        own = self._path_left(flow) if self.failed and flow.sender != flow.receiver else ()
        return own or self._topology.path(*flow)

    def _path_left(self, flow: Flow) -> tuple[Hop, ...]:
        """Return the path over the links that are left; empty if there is none."""
        first = self._topology.first_hop(flow.sender, flow.nics[0])
        last = self._topology.first_hop(flow.receiver, flow.nics[1]).turned
        if {first.link.name, last.link.name} & self.failed:
            return ()
        route = [first]
        while (node := route[-1].receiver) != last.sender:
            onward = self._hops_nearer(node, last.sender)
            if not onward:
                return ()
            route.append(onward[self._choose(flow, route[-1], len(onward))])
        return (*route, last)

    def _choose(self, flow: Flow, before: Hop, count: int) -> int:
        routing = self._topology.routing
        five_tuple = FiveTuple(flow.sender, flow.receiver, flow.source_port)
        return routing.choose(five_tuple, before.receiver, before.link.name, count) if routing else 0

    @cached_property
    def _hops_by_switch(self) -> dict[str, tuple[Hop, ...]]:
        hops: dict[str, list[Hop]] = {switch: [] for switch in self._topology.switches}
        for link in self._topology.links:
            if link.name not in self.failed and hops.keys() >= set(link.ends):
                for sender, receiver in (link.ends, link.ends[::-1]):
                    hops[sender].append(Hop(link, sender, receiver))
        return {switch: tuple(each) for switch, each in hops.items()}

    def _hops_nearer(self, node: str, switch: str) -> tuple[Hop, ...]:
        """Return the links from a switch on shortest paths to another one, in the order of the topology's links."""
        distances = self._distances_to(switch)
        if node not in distances:
            return ()
        return tuple(
            hop for hop in self._hops_by_switch[node] if distances.get(hop.receiver, -1) == distances[node] - 1
        )

    def _distances_to(self, switch: str) -> dict[str, int]:
        if switch not in self._distances:
            self._distances[switch] = count_hops(
                switch, lambda node: (hop.receiver for hop in self._hops_by_switch[node])
            )
        return self._distances[switch]


def _crossed(topology: Topology, rerouting: Rerouting, flow: Flow) -> Iterator[Hop]:
    """Yield the links that a flow crosses. If packets are spread, switches avoid failed links, but NICs do not."""
    if topology.spreads_packets and not rerouting.failed:
        yield from topology.link_shares(flow)
        return
    yield from rerouting.path(flow)
    if topology.spreads_packets:
        yield from (hop for ends in topology.planes(flow) for hop in ends)


def find_stalled_flow(spec: TrialSpec, failed: frozenset[str]) -> str | None:
    """Return the ends of a flow that can send nothing while these links are down, or None.

    With `reroute_after_ms`, routes avoid these links; otherwise they stay.
    """
    rerouting = Rerouting(spec.topology, failed if spec.reroute_after_ms is not None else frozenset())
    flows = {flow: name for name in spec.jobs for flow in spec.flows_of(name)}
    flows |= {flow: name for name, traffic in spec.cross_traffic.items() for flow in traffic.flows}
    for flow, name in flows.items():
        for each in (flow, flow.turned):
            if failed & {hop.link.name for hop in _crossed(spec.topology, rerouting, each)}:
                return f"{name} from {each.sender} to {each.receiver}"
    return None
