# SPDX-License-Identifier: Apache-2.0
"""Moves of running workers after a decision, and swaps of two workers, so that jobs meet less on their worst links.

Swaps are ours. MonkeyTree (arXiv 2602.08296) migrates workers by another rule, `defragmentation.py`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from typing import Protocol

from roundabout.models.cassini import Circle
from roundabout.models.cluster.defragmentation import limit_fragments
from roundabout.models.cluster.demands import DemandFinder, random_score
from roundabout.models.cluster.placement import HostTree, host_tree_of
from roundabout.models.cluster.state import JobKnowledge, Placement, Placements, State

MIN_FALL = 0.10
"""Least fall of the sum over jobs of the worst link's excess for which two workers are swapped.

It was set before the first simulation. A smaller value moves more workers for less; each move costs a restart.
"""

SAME = 1e-9

FREE = ""
"""The name of the job on GPUs that no job has."""


@dataclass(frozen=True)
class MigrationRule:
    """The rule by which running workers are moved at a decision.

    `swaps` is the most swaps of two workers, and `fragments` the most fragments of a rack; None is any number.
    """

    swaps: int = 0
    fragments: int | None = None

    def apply(self, state: State, placements: Placements, known: JobKnowledge) -> tuple[Placements, tuple[str, ...]]:
        """Return the placements after the moves, and the jobs of which workers are moved."""
        if self.fragments is not None:
            after = limit_fragments(state, placements, self.fragments)
            return after, tuple(job for job in placements if after[job] != placements[job])
        if not self.swaps:
            return placements, ()
        placements, swaps = swap_workers(state, placements, known, self.swaps)
        return placements, tuple(dict.fromkeys(job for swap in swaps for job in swap.moved))


NO_MIGRATION = MigrationRule()


@dataclass(frozen=True)
class Swap:
    """An exchange of a job's worker on one host with another job's worker, or a free GPU, on another host.

    `fall` is that of the sum over jobs of the worst link's excess.
    """

    job: str
    host: str
    other_job: str
    other_host: str
    fall: float

    @property
    def moved(self) -> tuple[str, ...]:
        """Return the jobs of which it moves a worker."""
        return tuple(job for job in (self.job, self.other_job) if job != FREE)


def swap_workers(state: State, placements: Placements, known: JobKnowledge, most: int) -> tuple[Placements, list[Swap]]:
    """Swap workers at most `most` times, each time those whose swap lowers the excess most, by `MIN_FALL` or more.

    Return the new placements, in which each job has as many workers as before, and the swaps. A job that stands still
    after a move is not moved again until it runs, because it would have stood still for nothing.
    """
    requests = {job.request.name: job.request for job in state.jobs}
    ground = host_tree_of(state.topology)
    still = {job.request.name for job in state.jobs if job.resumes_s is not None}
    search = SwapSearch(ground, DemandFinder(ground, requests, known), placements, still)
    swaps = list(search.swaps(most))
    return search.placements, swaps


class LinkDemands(Protocol):
    """The demands of placed jobs on links."""

    def circles_of(self, job: str, placement: Placement) -> Mapping[str, Circle]:
        """Return a job's circle on each link that it crosses, by link."""
        ...


class SwapSearch:
    """A search of all swaps of two workers. `placements` are the present ones; jobs in `fixed` are not moved."""

    def __init__(
        self, ground: HostTree, requested: LinkDemands, placements: Placements, fixed: Collection[str] = ()
    ) -> None:
        self._ground, self._demands, self._fixed = ground, requested, fixed
        self.placements = dict(placements)
        self._crossed = {job: requested.circles_of(job, placement) for job, placement in self.placements.items()}
        self._meet()

    def worst_excess(self) -> dict[str, float]:
        """Return each job's excess on its worst link, as a share of the link's rate; 0 for one without traffic."""
        return {job: _largest(self._excess, circles) for job, circles in self._crossed.items()}

    def swaps(self, most: int) -> Iterator[Swap]:
        """Apply the best swaps one after the other, `most` at most, and yield each after it."""
        for _ in range(most):
            if (best := self.best_swap(MIN_FALL)) is None:
                return
            self.apply(best)
            yield best

    def best_swap(self, least: float) -> Swap | None:
        """Return the swap that lowers the sum of worst excesses most, by `least` or more; None if there is none.

        A swap changes the excess of the two jobs and of those that they meet, so it lowers the sum by no more than what
        all of these have. Pairs with the largest such bounds are tried first, and the first of equals is taken.
        """
        worst = self.worst_excess()
        bounds, now = self._bounds(worst), sum(worst.values())
        pairs = sorted(self._pairs(), key=lambda pair: -bounds[pair[0][0]] - bounds[pair[1][0]])
        best: Swap | None = None
        for (job, host), (other_job, other_host) in pairs:
            needed = best.fall + SAME if best else least - SAME
            if bounds[job] + bounds[other_job] < needed:
                break
            fall = now - self._sum_after(job, host, other_job, other_host)
            if fall >= needed:
                best = Swap(job, host, other_job, other_host, fall)
        return best

    def apply(self, swap: Swap) -> None:
        """Change the placements by a swap."""
        for job, placement in self._swapped(swap.job, swap.host, swap.other_job, swap.other_host).items():
            self.placements[job], self._crossed[job] = placement, self._demands.circles_of(job, placement)
        self._meet()

    def _meet(self) -> None:
        """Find each job's circle by link, in the order of the placements, and each link's excess."""
        self._links: dict[str, dict[str, Circle]] = {}
        for job, circles in self._crossed.items():
            for link, circle in circles.items():
                self._links.setdefault(link, {})[job] = circle
        self._excess = {link: self._excess_of(link, circles.values()) for link, circles in self._links.items()}

    def _bounds(self, worst: Mapping[str, float]) -> dict[str, float]:
        """Return, for each job, the sum of worst excesses of the job and of those on its links with an excess."""
        near = {job: {job} for job in self.placements}
        for link, circles in self._links.items():
            if self._excess[link] > 0:
                for job in circles:
                    near[job].update(circles)
        return {FREE: 0.0} | {job: fsum(worst[each] for each in jobs) for job, jobs in near.items()}

    def _pairs(self) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        """Yield all pairs of a worker (job and host) with another job's worker, or a free GPU, on another host."""
        free = self._ground.free(self.placements.values())
        movable = {job: each for job, each in self.placements.items() if job not in self._fixed}
        places = [(job, host) for job, placement in movable.items() for host in dict.fromkeys(placement)]
        places += [(FREE, host) for host, count in zip(self._ground.hosts, free, strict=True) if count > 0]
        for one, other in combinations(places, 2):
            if one[0] != other[0] and one[1] != other[1]:
                yield one, other

    def _swapped(self, job: str, host: str, other_job: str, other_host: str) -> dict[str, Placement]:
        """Return the new placements of the jobs that a swap moves."""
        changed = {job: self._replaced(job, host, other_host)}
        if other_job != FREE:
            changed[other_job] = self._replaced(other_job, other_host, host)
        return changed

    def _replaced(self, job: str, host: str, by: str) -> Placement:
        """Return a job's placement with one worker on another host, in the order of the line of hosts."""
        hosts = list(self.placements[job])
        hosts[hosts.index(host)] = by
        return tuple(sorted(hosts, key=self._ground.at.__getitem__))

    def _sum_after(self, job: str, host: str, other_job: str, other_host: str) -> float:
        """Return the sum over jobs of the worst excess after a swap."""
        swapped = self._swapped(job, host, other_job, other_host)
        after = {name: self._demands.circles_of(name, placement) for name, placement in swapped.items()}
        crossed = self._crossed | after
        excess = dict(self._excess)
        for link in dict.fromkeys(link for name in after for link in (*after[name], *self._crossed[name])):
            now = self._links.get(link, {})
            if any(after[name].get(link) != now.get(name) for name in after):
                on_link = [name for name in self.placements if link in crossed[name]]
                excess[link] = self._excess_of(link, (crossed[name][link] for name in on_link))
        return sum(_largest(excess, circles) for circles in crossed.values())

    def _excess_of(self, link: str, circles: Iterable[Circle]) -> float:
        demands = tuple(circles)
        if len(demands) < 2:
            return 0.0
        return 1 - random_score(demands, self._ground.capacity_gbps[link])


def _largest(excess: Mapping[str, float], links: Iterable[str]) -> float:
    return max((excess[link] for link in links), default=0.0)
