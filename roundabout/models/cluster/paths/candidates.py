# SPDX-License-Identifier: Apache-2.0
"""The flows of a placed job, and the source ports by which each can take another path."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from roundabout.models.cassini import Arc, Circle
from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.demands import FlowPorts
from roundabout.models.cluster.state import JobKnowledge, Placement, State
from roundabout.spec.profile import Profile
from roundabout.spec.routing import FIRST_PORT, PORTS, FlowPort, source_port
from roundabout.spec.topology import Direction, Topology

TRIED = 64
"""Number of source ports that are tried for a flow.

With 16 equally likely paths, 64 ports miss a given one with a probability of 1.6 %. A flow does not take a path that no
tried port leads to.
"""

Path = tuple[Direction, ...]


@dataclass(frozen=True)
class PlacedFlow:
    """A flow between two ranks of a job on different hosts: its demand over an iteration, and its port on each path.

    The first path is the one that the flow has without a choice.
    """

    sender: int
    receiver: int
    number: int
    circle: Circle
    port_of: Mapping[Path, int]

    @cached_property
    def mean_gbps(self) -> float:
        """Return the mean demand of a job that nothing delays, Gbit/s."""
        return sum((arc.end_ms - arc.begin_ms) * arc.gbps for arc in self.circle.arcs) / self.circle.iteration_ms

    def path_of(self, port: int) -> Path:
        """Return the path to which one of the flow's ports leads."""
        return next(path for path, own in self.port_of.items() if own == port)

    def by(self, path: Path) -> FlowPort:
        """Return the flow with the port that leads to a path."""
        return FlowPort(sender=self.sender, receiver=self.receiver, number=self.number, port=self.port_of[path])


def placed_flows(job: str, profile: Profile, placement: Placement, topology: Topology) -> tuple[PlacedFlow, ...]:
    """Return the flows of a job between hosts, in the order of phases and ranks."""
    arcs: dict[tuple[int, int, int], list[Arc]] = {}
    end_ms = 0.0
    for phase in profile.phases:
        begin_ms, end_ms = end_ms, end_ms + phase.duration_ms
        for each in phase.transfers(len(placement)):
            if placement[each.sender] != placement[each.receiver]:
                key = each.sender, each.receiver, each.channel
                gbps = each.bytes * 8 / phase.duration_ms / 1e6
                arcs.setdefault(key, []).append(Arc(begin_ms, end_ms, gbps))

    def flow(key: tuple[int, int, int]) -> PlacedFlow:
        hosts = placement[key[0]], placement[key[1]]
        circle = Circle(job, end_ms, tuple(arcs[key]))
        return PlacedFlow(*key, circle, _ports_by_path(topology, *hosts, source_port(job, *key)))

    return tuple(map(flow, arcs))


@lru_cache(maxsize=65_536)
def _ports_by_path(topology: Topology, sender: str, receiver: str, first: int) -> Mapping[Path, int]:
    """Return a port for each path that one of the tried ports leads to, in the order of the ports from `first` on."""
    found: dict[Path, int] = {}
    for port in (FIRST_PORT + (first - FIRST_PORT + more) % PORTS for more in range(TRIED)):
        found.setdefault(topology.directions(topology.path(sender, receiver, port)), port)
    return found


def ports_without_choice(flows: Mapping[str, tuple[PlacedFlow, ...]]) -> dict[str, FlowPorts]:
    """Return the ports of flows that take their first path, by job."""
    return {job: tuple(flow.by(next(iter(flow.port_of))) for flow in own) for job, own in flows.items()}


def with_present_order(decided: PlacementDecision, state: State) -> PlacementDecision:
    """Return the decision with the present order of workers for each job that stays on its GPUs.

    A change of the order alone has no effect, and ports are chosen for ranks.
    """
    present = state.placements
    placements = {
        job: present[job] if job in present and sorted(present[job]) == sorted(placed) else placed
        for job, placed in decided.placements.items()
    }
    return replace(decided, placements=placements)


def flows_of_jobs(decided: PlacementDecision, state: State, known: JobKnowledge) -> dict[str, tuple[PlacedFlow, ...]]:
    """Return the flows of each placed job that sends to another host, in the order of arrival."""
    found: dict[str, tuple[PlacedFlow, ...]] = {}
    for request in (job.request for job in state.jobs):
        if placed := decided.placements.get(request.name, ()):
            flows = placed_flows(request.name, known.profile(request, len(placed)), placed, state.topology)
            found |= {request.name: flows} if flows else {}
    return found
