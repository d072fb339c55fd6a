# SPDX-License-Identifier: Apache-2.0
"""The Cassini module around a scheduler: the most compatible of its candidate placements, and its time-shifts.

Source: the interleaving thesis, sections 4.4.2 (Algorithm 2) and 4.5.5. docs/reference/schedulers.md describes what
real jobs need in addition: links with room for all demands, jobs without a unified circle, and equal links.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import fmean

import numpy as np

from roundabout.models.cassini import (
    CassiniError,
    Rotations,
    SharedLink,
    find_loop,
    joint_timetables,
    link_bundles,
    rotate_bundle,
    unify,
    with_most_room,
)
from roundabout.models.cluster import demands
from roundabout.models.cluster.demands import (
    DemandFinder,
    FlowPorts,
    JobDemands,
    peak_gbps,
    random_score,
    worst_excess,
)
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import JobKnowledge, Placements, Scheduler, State
from roundabout.models.cluster.swap_rule import NO_MIGRATION, MigrationRule
from roundabout.models.cluster.timetable_fit import Links, fit_timetables, mean_slowdown
from roundabout.spec.cassini import THRESHOLD, Timetable
from roundabout.spec.cluster import Rank

PLAYED = 2
"""Number of times that a candidate is played, each time with other random starts. More would rank equals surer."""

MAX_ROTATIONS = 2_000_000
"""Largest number of sectors examined for a link, which takes some ms; then the best rotation so far is taken."""


@dataclass(frozen=True)
class RankingRules:
    """The rules of Cassini's choice.

    `threshold` is the tolerated earliness of iterations, as a share of their periods, and `migration` the rule of moves
    after the choice.
    """

    rank: Rank = "algorithm-2"
    threshold: float = THRESHOLD
    migration: MigrationRule = NO_MIGRATION


DEFAULT_RULES = RankingRules()


@dataclass(frozen=True)
class PlacementDecision:
    """The placements of jobs, and the timetables of their agents; jobs without a timetable are unconstrained.

    A job that shares links with the same jobs as before keeps its timetable. `scores` are the scores of the scheduler's
    candidates in their order, by the rule that ranked them; None for a candidate that Algorithm 2 leaves out.
    `migrated` names the jobs of which the rule of migration moved a worker. Jobs of larger `priorities` send first.
    `source_ports` are those of flows whose paths are chosen.
    """

    placements: Placements
    timetables: Mapping[str, Timetable]
    scores: tuple[float | None, ...]
    migrated: tuple[str, ...] = ()
    priorities: Mapping[str, int] = field(default_factory=dict)
    source_ports: Mapping[str, FlowPorts] = field(default_factory=dict)


def decide_alone(
    scheduler: Scheduler, state: State, seed: int, known: JobKnowledge, migration: MigrationRule = NO_MIGRATION
) -> PlacementDecision:
    """Return the scheduler's own choice, after the moves of workers by a rule."""
    chosen = scheduler.decide(replace(state, candidates=1), seed)[0]
    placements, migrated = migration.apply(state, chosen, known)
    return PlacementDecision(placements, {}, (), migrated)


def decide_with_cassini(
    scheduler: Scheduler, state: State, seed: int, known: JobKnowledge, rules: RankingRules = DEFAULT_RULES
) -> PlacementDecision:
    """Choose the best of a scheduler's candidates, the first of equals, with time-shifts for its jobs.

    By Algorithm 2 candidates without a loop go first. If all candidates have a loop, choose the best of them, in which
    jobs of loops are not shifted. Swaps of workers come after the choice, and before the time-shifts. Timetables count
    from the cluster's start.
    """
    offered = scheduler.decide(state, seed)
    requests = {job.request.name: job.request for job in state.jobs}
    finder = DemandFinder(host_tree_of(state.topology), requests, known)
    shared_links = [finder.shared_links(placements) for placements in offered]
    found: list[PlacementScore] = []
    if rules.rank == "algorithm-2":
        found = [PlacementScore(each) for each in shared_links]
        best = max(range(len(found)), key=lambda place: (not found[place].loops, found[place].score))
        scores: tuple[float | None, ...] = tuple(None if each.loops else each.score for each in found)
    else:
        ranked = [rank_score(rules.rank, each, len(offered[0])) for each in shared_links]
        best, scores = ranked.index(max(ranked)), tuple(ranked)
    placements, migrated = rules.migration.apply(state, offered[best], known)
    if migrated:
        chosen = PlacementScore(finder.shared_links(placements))
    else:
        chosen = found[best] if found else PlacementScore(shared_links[best])
    return PlacementDecision(placements, chosen.timetables(rules.threshold), scores, migrated)


def rank_score(rank: Rank, shared_links: Mapping[JobDemands, float], jobs: int) -> float:
    """Return the score of a candidate with `jobs` placed jobs by its worst links, or as it was played; 1 is the best.

    By `worst-link`, each job counts with the score of its worst link at random phases. By `played`, the jobs that share
    links are played by the flow-level engine without time-shifts, and the score is the inverse of the mean slowdown
    over all jobs.
    """
    sharing = {circle.job for circles in shared_links for circle in circles}
    if not sharing:
        return 1.0
    if rank == "worst-link":
        return 1 - sum(worst_excess(shared_links).values()) / jobs
    slowdown = fmean(mean_slowdown(tuple(shared_links.items()), draw=draw) for draw in range(PLAYED))
    return jobs / (jobs - len(sharing) + len(sharing) * slowdown)


def clear_caches() -> None:
    """Forget what decisions keep for later ones: rotations, timetables and scores of links."""
    for cached in (_fits_on_circle, _rotations, _rotations_with_room, _timetables):
        cached.cache_clear()
    demands.clear_caches()


class PlacementScore:
    """The compatibility of the jobs of a placement.

    `parts` are the connected subgraphs of the placement's affinity graph. They consist of the links without room for
    all demands whose jobs have a unified circle. On other links, and on links that would close a loop, overlap is
    random.
    """

    def __init__(self, shared_links: Mapping[JobDemands, float]) -> None:
        self._gbps = shared_links
        self._bundle_of: dict[JobDemands, tuple[JobDemands, ...]] = {}
        self._short = [circles for circles, gbps in shared_links.items() if peak_gbps(circles) > gbps]
        tied = [circles for circles in self._short if _fits_on_circle(circles)]
        self._within = {one: other for one in tied for other in tied if set(one) < set(other)}
        graphs = _connected_parts(circles for circles in tied if circles not in self._within)
        self.loops = any(map(_has_loop, graphs))
        self.parts = _connected_parts(circles for graph in graphs for circles in self._without_loops(graph))
        bundles = (bundle for part in self.parts for bundle in _bundles(part))
        self._bundle_of = {circles: bundle for bundle in bundles for circles in bundle}
        self.score = fmean([self._score(circles) for circles in shared_links] or [1.0])

    def _without_loops(self, graph: Sequence[JobDemands]) -> Sequence[JobDemands]:
        """Return all links, or with a loop those that gain most by time-shifts."""
        if not _has_loop(graph):
            return graph
        chosen: list[JobDemands] = []
        for circles in sorted(graph, key=lambda each: self._by_chance(each) - self._rotations(each).score):
            chosen += [] if _has_loop([*chosen, circles]) else [circles]
        return chosen

    def _score(self, circles: JobDemands) -> float:
        """Return the score of a link; if all its jobs share another link, too, with the rotations of that."""
        if circles in self._bundle_of:
            return self._rotations(circles).score
        whole = self._within.get(circles)
        if whole not in self._bundle_of:
            return self._by_chance(circles)
        rotated = self._rotations(whole).rotated_gbps[[whole.index(circle) for circle in circles]].sum(axis=0)
        return 1 - float(np.maximum(rotated - self._gbps[circles], 0).mean()) / self._gbps[circles]

    def _rotations(self, circles: JobDemands) -> Rotations:
        """Return a link's rotations, which are those of its bundle."""
        bundle = self._bundle_of.get(circles, (circles,))
        return _rotations(_shared_links(bundle, self._gbps))[bundle.index(circles)]

    def _by_chance(self, circles: JobDemands) -> float:
        return random_score(circles, self._gbps[circles])

    def timetables(self, threshold: float) -> dict[str, Timetable]:
        """Return the timetables of each subgraph's jobs, except where the jobs are faster without timetables."""
        found: dict[str, Timetable] = {}
        for company in _connected_parts(self._short):
            parts = tuple(tuple(part) for part in self.parts if part[0] in company)
            if parts:
                found |= _timetables(tuple((circles, self._gbps[circles]) for circles in company), parts, threshold)
        return found


def _connected_parts(shared_links: Iterable[JobDemands]) -> list[list[JobDemands]]:
    """Group links that are connected by common jobs."""
    parts: list[list[JobDemands]] = []
    for circles in shared_links:
        jobs = {circle.job for circle in circles}
        near = [part for part in parts if any(circle.job in jobs for each in part for circle in each)]
        parts = [part for part in parts if part not in near]
        parts.append([each for part in near for each in part] + [circles])
    return parts


def _crossing(part: Sequence[JobDemands]) -> dict[str, list[str]]:
    """Return the jobs of each link, which is called by its place."""
    return {str(place): [circle.job for circle in circles] for place, circles in enumerate(part)}


def _has_loop(part: Sequence[JobDemands]) -> bool:
    return find_loop(_crossing(part)) is not None


def _bundles(part: Sequence[JobDemands]) -> list[tuple[JobDemands, ...]]:
    """Group links that the same jobs share."""
    return [tuple(part[int(place)] for place in bundle) for bundle in link_bundles(_crossing(part))]


def _shared_links(bundle: Sequence[JobDemands], gbps: Mapping[JobDemands, float]) -> tuple[SharedLink, ...]:
    return tuple(SharedLink(circles, gbps[circles]) for circles in bundle)


@lru_cache(maxsize=4096)
def _fits_on_circle(circles: JobDemands) -> bool:
    """Return True if the jobs fit on a circle."""
    try:
        unify(circles)
    except CassiniError:
        return False
    return True


@lru_cache(maxsize=1024)
def _rotations(bundle: tuple[SharedLink, ...]) -> tuple[Rotations, ...]:
    return rotate_bundle(bundle, most=MAX_ROTATIONS)


@lru_cache(maxsize=1024)
def _rotations_with_room(bundle: tuple[SharedLink, ...], threshold: float) -> tuple[Rotations, ...]:
    return with_most_room(_rotations(bundle), 2 * threshold, MAX_ROTATIONS)


@lru_cache(maxsize=1024)
def _timetables(links: Links, parts: tuple[tuple[JobDemands, ...], ...], threshold: float) -> dict[str, Timetable]:
    """Return the timetables of some links' jobs, none if the jobs of all links are better off without."""
    found: dict[str, Timetable] = {}
    for part in parts:
        rotations: dict[JobDemands, Rotations] = {}
        for bundle in _bundles(part):
            with_room = _rotations_with_room(_shared_links(bundle, dict(links)), threshold)
            rotations |= zip(bundle, with_room, strict=True)
        found |= joint_timetables({str(place): rotations[each] for place, each in enumerate(part)}, threshold, {})
    return fit_timetables(links, found)
