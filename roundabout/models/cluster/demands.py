# SPDX-License-Identifier: Apache-2.0
"""The demands of placed jobs on links, and how much of them a link cannot carry if jobs' phases are random."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from roundabout.models.cassini import Arc, Circle
from roundabout.models.cluster.placement import HostTree
from roundabout.models.cluster.state import JobKnowledge, Placement, Placements, Request
from roundabout.spec.profile import Phase
from roundabout.spec.routing import FIRST_PORT, FlowPort

FlowPorts = tuple[FlowPort, ...]
"""The chosen source ports of a job's flows."""

JobDemands = tuple[Circle, ...]
"""The demands of a link's jobs, as circles."""


class DemandFinder:
    """A finder of the demands that placed jobs have on links. `source_ports` has each job's chosen ports, if any."""

    def __init__(
        self,
        ground: HostTree,
        requests: Mapping[str, Request],
        known: JobKnowledge,
        source_ports: Mapping[str, FlowPorts] = MappingProxyType({}),
    ) -> None:
        self._ground, self._requests, self._known, self._ports = ground, requests, known, source_ports

    def shared_links(self, placements: Placements) -> dict[JobDemands, float]:
        """Return the sets of demands that share links, each with its narrowest link's payload rate, Gbit/s.

        Links with equal demands of the same jobs, such as the uplinks of two racks, need equal time-shifts and count as
        one.
        """
        crossing: dict[str, list[Circle]] = {}
        for job in (job for job in self._requests if job in placements):  # in one order, for the same time-shifts
            for link, circle in self.circles_of(job, placements[job]).items():
                crossing.setdefault(link, []).append(circle)
        found: dict[JobDemands, float] = {}
        for link, circles in crossing.items():
            if len(circles) > 1:
                capacity_gbps = self._ground.capacity_gbps[link]
                found[tuple(circles)] = min(found.get(tuple(circles), capacity_gbps), capacity_gbps)
        return found

    def circles_of(self, job: str, placement: Placement) -> Mapping[str, Circle]:
        """Return a job's circle on each link that it crosses, as its agents see it, in its busier direction."""
        return _circles(self._ground, self._known, self._requests[job], placement, self._ports.get(job, ()))


@lru_cache(maxsize=65_536)
def _circles(
    ground: HostTree, known: JobKnowledge, request: Request, placement: Placement, chosen: FlowPorts
) -> Mapping[str, Circle]:
    ports = {(each.sender, each.receiver, each.number): each.port for each in chosen}
    profile = known.profile(request, len(placement))
    arcs: dict[str, list[Arc]] = {}
    end_ms = 0.0
    for phase in profile.phases:
        end_ms += phase.duration_ms
        busier: dict[str, int] = {}
        for (link, _), size in _bytes_by_link(ground, phase, placement, ports).items():
            busier[link] = max(busier.get(link, 0), size)
        for link, size in busier.items():
            gbps = size * 8 / phase.duration_ms / 1e6
            arcs.setdefault(link, []).append(Arc(end_ms - phase.duration_ms, end_ms, gbps))
    made = {each: Circle(request.name, end_ms, each) for each in dict.fromkeys(map(tuple, arcs.values()))}
    return {link: made[tuple(each)] for link, each in arcs.items()}


def _bytes_by_link(
    ground: HostTree, phase: Phase, placement: Placement, ports: Mapping[tuple[int, int, int], int]
) -> dict[tuple[str, bool], int]:
    """Return the bytes of a phase over each link and direction; a flow without a chosen port has the first one."""
    sizes: dict[tuple[str, bool], int] = {}
    for each in phase.transfers(len(placement)):
        port = ports.get((each.sender, each.receiver, each.channel), FIRST_PORT)
        for crossed in _links_between(ground, placement[each.sender], placement[each.receiver], port):
            sizes[crossed] = sizes.get(crossed, 0) + each.bytes
    return sizes


@lru_cache(maxsize=65_536)
def _links_between(ground: HostTree, sender: str, receiver: str, port: int) -> tuple[tuple[str, bool], ...]:
    return tuple(ground.links_between(sender, receiver, port))


def clear_caches() -> None:
    """Forget the demands of earlier placements."""
    for cached in (_circles, _links_between, random_score, demand_levels):
        cached.cache_clear()


def worst_excess(shared_links: Mapping[JobDemands, float]) -> dict[str, float]:
    """Return each job's excess on its worst link: the mean demand of all jobs beyond the rate, over the rate.

    The mean is over random phases of the jobs. Jobs that share no link are left out.

    Args:
        shared_links: the demands on shared links, with each link's payload rate, Gbit/s.
    """
    found: dict[str, float] = {}
    for circles, gbps in shared_links.items():
        excess = 1 - random_score(circles, gbps)
        for circle in circles:
            found[circle.job] = max(found.get(circle.job, 0.0), excess)
    return found


@lru_cache(maxsize=4096)
def random_score(circles: JobDemands, capacity_gbps: float) -> float:
    """Return the mean compatibility score of jobs on a link of this payload rate over random rotations."""
    together = {0.0: 1.0}
    for circle in circles:
        longer: dict[float, float] = {}
        for gbps, share in together.items():
            for more, part in demand_levels(circle).items():
                longer[gbps + more] = longer.get(gbps + more, 0.0) + share * part
        together = longer
    return 1 - sum(share * max(gbps - capacity_gbps, 0) for gbps, share in together.items()) / capacity_gbps


def peak_gbps(circles: JobDemands) -> float:
    """Return the largest possible demand of jobs together, Gbit/s."""
    return sum(max(demand_levels(circle)) for circle in circles)


@lru_cache(maxsize=4096)
def demand_levels(circle: Circle) -> dict[float, float]:
    """Return a job's demands, Gbit/s, and the share of its iteration with each."""
    edges = sorted({0.0, circle.iteration_ms, *(ms for arc in circle.arcs for ms in (arc.begin_ms, arc.end_ms))})
    levels: dict[float, float] = {}
    for begin, end in pairwise(edges):
        gbps = sum(arc.gbps for arc in circle.arcs if arc.begin_ms <= begin < arc.end_ms)
        levels[gbps] = levels.get(gbps, 0.0) + (end - begin) / circle.iteration_ms
    return levels
