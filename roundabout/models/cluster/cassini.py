# SPDX-License-Identifier: Apache-2.0
"""The Cassini module around a scheduler: the most compatible of its candidate placements, and its time-shifts.

Source: the interleaving thesis, sections 4.4.2 (Algorithm 2) and 4.5.5. docs/reference/schedulers.md describes what
real jobs need in addition: links with room for all demands, jobs without a unified circle, and equal links.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import fmean

import numpy as np

from roundabout.models.cassini import (
    Arc,
    CassiniError,
    Circle,
    Rotations,
    find_loop,
    joint_timetables,
    rotate,
    unify,
    with_most_room,
)
from roundabout.models.cluster.placement import HostTree, host_tree_of
from roundabout.models.cluster.state import JobKnowledge, Placement, Placements, Request, Scheduler, State
from roundabout.models.cluster.timetable_fit import Links, fit_timetables
from roundabout.spec.cassini import THRESHOLD, Timetable

MOST = 2_000_000
"""Largest number of sectors examined for a link, which takes some ms; then the best rotation so far is taken."""

JobDemands = tuple[Circle, ...]
"""The demands of a link's jobs, as circles."""


@dataclass(frozen=True)
class PlacementDecision:
    """The placements of jobs, and the timetables of their agents; jobs without a timetable are unconstrained.

    A job that shares links with the same jobs as before keeps its timetable. `scores` are the compatibility scores of
    the scheduler's candidates in their order; None for a candidate with a loop.
    """

    placements: Placements
    timetables: Mapping[str, Timetable]
    scores: tuple[float | None, ...]


def decide_with_cassini(
    scheduler: Scheduler, state: State, seed: int, known: JobKnowledge, threshold: float = THRESHOLD
) -> PlacementDecision:
    """Choose the most compatible of a scheduler's candidates, the first of equals, with time-shifts for its jobs.

    If all candidates have a loop, choose the best of them, in which jobs of loops are not shifted. Timetables count
    from the cluster's start; `threshold` is a share of their periods.
    """
    offered = scheduler.decide(state, seed)
    requests = {job.request.name: job.request for job in state.jobs}
    asked = DemandFinder(host_tree_of(state.topology), requests, known)
    found = [PlacementScore(asked.shared_links(placements)) for placements in offered]
    best = max(found, key=lambda each: (not each.loops, each.score))
    scores = tuple(None if each.loops else each.score for each in found)
    return PlacementDecision(offered[found.index(best)], best.timetables(threshold), scores)


def clear_caches() -> None:
    """Forget what decisions keep for later ones: rotations, timetables and scores of links."""
    for cached in (_fits_on_circle, _rotations, _rotations_with_room, _timetables, random_score, _levels):
        cached.cache_clear()


class DemandFinder:
    """A finder of the demands that placed jobs have on links."""

    def __init__(self, ground: HostTree, requests: Mapping[str, Request], known: JobKnowledge) -> None:
        self._ground, self._requests, self._known = ground, requests, known
        self._circles: dict[tuple[str, Placement], dict[str, Circle]] = {}

    def shared_links(self, placements: Placements) -> dict[JobDemands, float]:
        """Return the sets of demands that share links, each with its narrowest link's payload rate, Gbit/s.

        Links with equal demands of the same jobs, such as the uplinks of two racks, need equal time-shifts and count as
        one.
        """
        crossing: dict[str, list[Circle]] = {}
        for job in (job for job in self._requests if job in placements):  # in one order, for the same time-shifts
            for link, circle in self._circles_of(job, placements[job]).items():
                crossing.setdefault(link, []).append(circle)
        found: dict[JobDemands, float] = {}
        for link, circles in crossing.items():
            if len(circles) > 1:
                capacity_gbps = self._ground.capacity_gbps[link]
                found[tuple(circles)] = min(found.get(tuple(circles), capacity_gbps), capacity_gbps)
        return found

    def _circles_of(self, job: str, placement: Placement) -> dict[str, Circle]:
        if (job, placement) not in self._circles:
            self._circles[job, placement] = self._compute_circles(job, placement)
        return self._circles[job, placement]

    def _compute_circles(self, job: str, placement: Placement) -> dict[str, Circle]:
        """Compute a job's circle on each link that it crosses, as its agents see it, in its busier direction."""
        profile = self._known.profile(self._requests[job], len(placement))
        ends_ms = list(accumulate(phase.duration_ms for phase in profile.phases))
        arcs: dict[str, list[Arc]] = {}
        for phase, end_ms in zip(profile.phases, ends_ms, strict=True):
            sizes: dict[tuple[str, bool], int] = {}
            for each in phase.transfers(len(placement)):
                for crossed in self._ground.links_between(placement[each.sender], placement[each.receiver]):
                    sizes[crossed] = sizes.get(crossed, 0) + each.bytes
            for link in dict.fromkeys(link for link, _ in sizes):
                size = max(sizes.get((link, up), 0) for up in (True, False))
                gbps = size * 8 / phase.duration_ms / 1e6
                arcs.setdefault(link, []).append(Arc(end_ms - phase.duration_ms, end_ms, gbps))
        return {link: Circle(job, ends_ms[-1], tuple(each)) for link, each in arcs.items()}


class PlacementScore:
    """The compatibility of the jobs of a placement.

    `parts` are the connected subgraphs of the placement's affinity graph. They consist of the links without room for
    all demands whose jobs have a unified circle. On other links, and on links that would close a loop, overlap is
    random.
    """

    def __init__(self, meetings: Mapping[JobDemands, float]) -> None:
        self._gbps = meetings
        self._short = [meeting for meeting, gbps in meetings.items() if _most_gbps(meeting) > gbps]
        tied = [meeting for meeting in self._short if _fits_on_circle(meeting)]
        self._within = {one: other for one in tied for other in tied if set(one) < set(other)}
        graphs = _connected_parts(meeting for meeting in tied if meeting not in self._within)
        self.loops = any(map(_has_loop, graphs))
        self.parts = _connected_parts(meeting for graph in graphs for meeting in self._without_loops(graph))
        self._rotated = {meeting for part in self.parts for meeting in part}
        self.score = fmean([self._score(meeting) for meeting in meetings] or [1.0])

    def _without_loops(self, graph: Sequence[JobDemands]) -> Sequence[JobDemands]:
        """Return all links, or with a loop those that gain most by time-shifts."""
        if not _has_loop(graph):
            return graph
        chosen: list[JobDemands] = []
        for meeting in sorted(graph, key=lambda each: self._by_chance(each) - self._rotations(each).score):
            chosen += [] if _has_loop([*chosen, meeting]) else [meeting]
        return chosen

    def _score(self, meeting: JobDemands) -> float:
        """Return the score of a link; if all its jobs share another link, too, with the rotations of that."""
        if meeting in self._rotated:
            return self._rotations(meeting).score
        whole = self._within.get(meeting)
        if whole not in self._rotated:
            return self._by_chance(meeting)
        rotated = self._rotations(whole).rotated_gbps[[whole.index(circle) for circle in meeting]].sum(axis=0)
        return 1 - float(np.maximum(rotated - self._gbps[meeting], 0).mean()) / self._gbps[meeting]

    def _rotations(self, meeting: JobDemands) -> Rotations:
        return _rotations(meeting, self._gbps[meeting])

    def _by_chance(self, meeting: JobDemands) -> float:
        return random_score(meeting, self._gbps[meeting])

    def timetables(self, threshold: float) -> dict[str, Timetable]:
        """Return the timetables of each subgraph's jobs, except where the jobs are faster without timetables."""
        found: dict[str, Timetable] = {}
        for company in _connected_parts(self._short):
            parts = tuple(tuple(part) for part in self.parts if part[0] in company)
            if parts:
                found |= _timetables(tuple((meeting, self._gbps[meeting]) for meeting in company), parts, threshold)
        return found


def _most_gbps(meeting: JobDemands) -> float:
    return sum(max(_levels(circle)) for circle in meeting)


def _connected_parts(meetings: Iterable[JobDemands]) -> list[list[JobDemands]]:
    """Group links that are connected by common jobs."""
    parts: list[list[JobDemands]] = []
    for meeting in meetings:
        jobs = {circle.job for circle in meeting}
        near = [part for part in parts if any(circle.job in jobs for each in part for circle in each)]
        parts = [part for part in parts if part not in near]
        parts.append([each for part in near for each in part] + [meeting])
    return parts


def _has_loop(part: Sequence[JobDemands]) -> bool:
    return find_loop({str(place): [circle.job for circle in meeting] for place, meeting in enumerate(part)}) is not None


@lru_cache(maxsize=4096)
def _fits_on_circle(meeting: JobDemands) -> bool:
    """Return True if the jobs fit on a circle."""
    try:
        unify(meeting)
    except CassiniError:
        return False
    return True


@lru_cache(maxsize=1024)
def _rotations(meeting: JobDemands, capacity_gbps: float) -> Rotations:
    return rotate(unify(meeting), capacity_gbps, most=MOST)


@lru_cache(maxsize=1024)
def _rotations_with_room(meeting: JobDemands, capacity_gbps: float, threshold: float) -> Rotations:
    return with_most_room(_rotations(meeting, capacity_gbps), 2 * threshold, MOST)


@lru_cache(maxsize=1024)
def _timetables(links: Links, parts: tuple[tuple[JobDemands, ...], ...], threshold: float) -> dict[str, Timetable]:
    """Return the timetables of some links' jobs, none if the jobs of all links are better off without."""
    carries_gbps = dict(links)
    found: dict[str, Timetable] = {}
    for part in parts:
        rotations = {
            str(place): _rotations_with_room(each, carries_gbps[each], threshold) for place, each in enumerate(part)
        }
        found |= joint_timetables(rotations, threshold, {})
    return fit_timetables(links, found)


@lru_cache(maxsize=4096)
def random_score(meeting: JobDemands, capacity_gbps: float) -> float:
    """Return the mean compatibility score of jobs on a link of this payload rate over random rotations."""
    together = {0.0: 1.0}
    for circle in meeting:
        longer: dict[float, float] = {}
        for gbps, share in together.items():
            for more, part in _levels(circle).items():
                longer[gbps + more] = longer.get(gbps + more, 0.0) + share * part
        together = longer
    return 1 - sum(share * max(gbps - capacity_gbps, 0) for gbps, share in together.items()) / capacity_gbps


@lru_cache(maxsize=4096)
def _levels(circle: Circle) -> dict[float, float]:
    """Return a job's demands, Gbit/s, and the share of its iteration with each."""
    edges = sorted({0.0, circle.iteration_ms, *(ms for arc in circle.arcs for ms in (arc.begin_ms, arc.end_ms))})
    levels: dict[float, float] = {}
    for begin, end in pairwise(edges):
        gbps = sum(arc.gbps for arc in circle.arcs if arc.begin_ms <= begin < arc.end_ms)
        levels[gbps] = levels.get(gbps, 0.0) + (end - begin) / circle.iteration_ms
    return levels
