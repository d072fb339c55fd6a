# SPDX-License-Identifier: Apache-2.0
"""Exact search of the best rotations of a discretized circle: branch and bound over jobs in order, two at a time.

All numbers are whole, so that values compare exactly. Why the bounds hold is in docs/explanation/cassini.md.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from roundabout.models.cassini.circles import Floats

Ints = npt.NDArray[np.int64]

AT_ONCE = 1 << 14
"""Largest number of values in one array, so that it stays in a processor's cache."""

FEW = 1000
"""Number of rotations up to which trying all is faster than first finding a good guess."""


@dataclass(frozen=True)
class SearchResult:
    """The rotations found, in sectors (the first job's is 0), their total excess, and its lower bound over all."""

    steps: tuple[int, ...]
    excess: int
    bound: int


def rotation_counts(turns: Sequence[int], sectors: int) -> list[int]:
    """Return how many rotations of each job must be tried: those within one iteration, and only one for the first job.

    If all iterations have a whole number of sectors, fewer rotations suffice. Rotating all jobs by a common multiple of
    the earlier jobs' iterations leaves the earlier jobs unchanged.
    """
    if any(sectors % count for count in turns):
        return [1, *(-(-sectors // count) for count in turns[1:])]
    needed, whole = [], 1
    for size in (sectors // count for count in turns):
        needed.append(math.gcd(whole, size))
        whole = math.lcm(whole, size)
    return needed


def best_steps(  # noqa: PLR0913 - the last two are for several links
    demands: Sequence[Floats],
    turns: Sequence[int],
    sectors: int,
    capacity: int,
    most: int,
    *,
    crossed: Sequence[Sequence[int]] | None = None,
    counts: Sequence[int] | None = None,
) -> SearchResult:
    """Find the rotations with the least sum, over sectors and links, of the demand beyond the capacity.

    The first job is not rotated. Of equally good rotations those are taken that rotate the other job with the most
    demand least, then the next, and so on. A search cut short by `most` returns any of them.

    Args:
        demands: each job's demand in each sector, in whole numbers; of one iteration if its sectors are whole. A row
            for each link that the job crosses, or one for all of them.
        turns: the number of iterations of each job on the unified circle.
        sectors: the number of sectors of the unified circle.
        capacity: the capacity of each link, in the unit of `demands`.
        most: the number of examined sectors, over all tried rotations, after which the best so far is returned.
        crossed: the numbers of the links that each job crosses, from 0; None for one link.
        counts: how many equal links each link stands for; None for one each.
    """
    links = [np.array(own) for own in crossed or [[0]] * len(demands)]
    of_links = 1 + max(int(own.max()) for own in links)
    capacities = capacity * np.array(counts or [1] * of_links, np.float64)
    if counts:  # a link of n times the demand and capacity has the excess of n equal links
        demands = [demand * np.array(counts)[own][:, None] for demand, own in zip(demands, links, strict=True)]
    order = [0, *sorted(range(1, len(demands)), key=lambda place: -demands[place].mean() * links[place].size)]
    rotations = rotation_counts([turns[place] for place in order], sectors)
    jobs = [
        _Job(demands[place], count, links[place], sectors, of_links)
        for place, count in zip(order, rotations, strict=True)
    ]
    volumes = np.zeros(of_links)
    for each in (each for job in jobs for each in job.demands):
        volumes[each.links] += each.volume
    floor = float(np.maximum(volumes - sectors * capacities, 0).sum())
    mirrored = np.empty(0, np.int64) if any(sectors % count for count in turns) else _mirror_images(jobs)
    found = _Search(jobs, -np.repeat(capacities, sectors), floor, most, mirrored).run()
    steps = dict(zip(order, found.steps, strict=True))
    return replace(found, steps=tuple(steps[place] for place in range(len(order))))


class _Demand:
    """A job's demand on some links; `runs` holds for each level the sectors [begin, end) that have it."""

    def __init__(self, demand: Floats, links: Ints, sectors: int) -> None:
        self.size, self.links = demand.size, links
        self.volume = float(demand.sum()) * (sectors // demand.size)
        self.runs = {float(level): _runs(demand == level) for level in np.unique(demand[demand > 0])}
        whole = [run for runs in self.runs.values() for run in runs] or [(0, 0)]
        self.axis = sum(whole[0]) - 1 if len(whole) == 1 else None
        """Where the demand is its own mirror image: sector x is as sector `axis` - x."""
        self._rolled = sliding_window_view(np.tile(demand, sectors // demand.size + 1), sectors)

    def rotate(self, steps: Ints) -> Floats:
        """Return the demand on one link over the unified circle at each of the rotations, by rows."""
        rolled: Floats = self._rolled[-steps % self.size]
        return rolled

    def excess_by_rotation(self, over: Floats, rotations: int) -> Floats:
        """Return the excess that this demand adds at each rotation; `over` is of its links, one after the other."""
        rows = max(AT_ONCE // over.shape[1], 1)
        batches = (over[begin : begin + rows] for begin in range(0, len(over), rows))
        return np.concatenate([self._level_excess(batch, rotations) for batch in batches])

    def _level_excess(self, over: Floats, rotations: int) -> Floats:
        """Return the excess of each level, whose runs of sectors give all rotations at once by cumulative sums."""
        added, excess = np.zeros((len(over), rotations)), np.maximum(over, 0)
        for level, runs in self.runs.items():
            raised = over + level
            np.maximum(raised, 0, out=raised)
            raised -= excess
            if over.shape[1] > self.size:  # iterations, and links, are alike
                raised = raised.reshape(len(over), -1, self.size).sum(axis=1)
            sums = np.zeros((len(over), 2 * self.size + 1))
            np.cumsum(raised, axis=1, out=sums[:, 1 : self.size + 1])
            np.add(sums[:, 1 : self.size + 1], sums[:, self.size, None], out=sums[:, self.size + 1 :])
            for begin, end in runs:
                added += sums[:, end : end + rotations]
                added -= sums[:, begin : begin + rotations]
        return added


class _Job:
    """A job's demands on the links that it crosses: one for all of them, or one for each."""

    def __init__(self, demand: Floats, rotations: int, links: Ints, sectors: int, of_links: int) -> None:
        self.rotations, self.of_links = rotations, of_links
        rows, crossed = ([demand], [links]) if demand.ndim == 1 else (list(demand), list(links[:, None]))
        self.demands = [_Demand(*each, sectors) for each in zip(rows, crossed, strict=True)]
        axes = {each.axis for each in self.demands}
        self.axis = axes.pop() if len(axes) == 1 else None

    def rotate(self, steps: Ints) -> Floats:
        """Return the demand over the unified circle, of one link after the other, at each of the rotations, by rows."""
        if self.of_links == 1:
            return self.demands[0].rotate(steps)
        rotated = [each.rotate(steps) for each in self.demands]
        everywhere = np.zeros((len(steps), self.of_links, rotated[0].shape[1]))
        for each, rows in zip(self.demands, rotated, strict=True):
            everywhere[:, each.links] = rows[:, None]
        return everywhere.reshape(len(steps), -1)

    def excess_by_rotation(self, over: Floats) -> Floats:
        """Return the excess that this job adds at each of its rotations; `over` is demand less capacity, by rows."""
        if self.of_links == 1:
            return self.demands[0].excess_by_rotation(over, self.rotations)
        by_link = over.reshape(len(over), self.of_links, -1)
        added = np.zeros((len(over), self.rotations))
        for each in self.demands:
            added += each.excess_by_rotation(by_link[:, each.links].reshape(len(over), -1), self.rotations)
        return added


def _mirror_images(jobs: Sequence[_Job]) -> Ints:
    """Return the rotations of the second job that can be skipped, because their mirror image has a smaller one."""
    axes = [job.axis for job in jobs if job.axis is not None]
    if len(axes) < len(jobs) or len(jobs) == 1:
        return np.empty(0, np.int64)
    steps = np.arange(jobs[1].rotations)
    return steps[steps > (axes[0] - axes[1] - steps) % steps.size]


def _runs(up: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], up, [False]))))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _batches(pairs: Ints, width: int) -> Iterator[Ints]:
    """Yield pairs as two rows, in batches that suit `width` numbers for each."""
    rows = max(AT_ONCE // width, 1)
    return (pairs[begin : begin + rows].T for begin in range(0, len(pairs), rows))


def _excess(over: Floats) -> Floats:
    total: Floats = np.maximum(over, 0).sum(axis=-1)
    return total


class _Search:
    def __init__(self, jobs: list[_Job], idle: Floats, floor: float, most: int, mirrored: Ints) -> None:
        self.jobs, self.idle, self.floor, self.left, self.mirrored = jobs, idle, floor, most, mirrored
        self.steps: Ints = np.zeros(len(jobs), np.int64)
        self.excess = math.inf
        self.below = math.inf
        """Only what has less excess is still looked for."""
        self.open = math.inf
        """The least bound of what was left out."""

    def run(self) -> SearchResult:
        if len(self.jobs) == 1 or math.prod(job.rotations for job in self.jobs[:-1]) > FEW:
            self._search_greedily()
        if len(self.jobs) > 1:
            self._visit(self.steps[:0], self.idle, self.floor)
        return SearchResult(tuple(self.steps.tolist()), int(self.excess), int(min(self.open, self.excess)))

    def _can_prune(self, bound: float) -> bool:
        """Return True if nothing better can be below that bound, or if the search is cut short."""
        if bound >= self.below or self.below <= self.floor:
            return True
        if self.left > 0 or self.excess == math.inf:
            return False
        self.open = min(self.open, bound)
        return True

    def _visit(self, steps: Ints, over: Floats, bound: float) -> None:
        """Rotate two more jobs, then all others; `over` is the demand of the earlier ones, less capacity."""
        if self._can_prune(bound):
            return
        one, other, *rest = self.jobs[len(steps) :]
        ones = over + one.rotate(np.arange(one.rotations))
        bounds = self._pairs(ones, over, other, rest)
        if not len(steps):
            bounds[:, self.mirrored] = math.inf
        if not rest:
            self._keep_best(steps[None], bounds.reshape(1, -1), bounds.shape)
            return
        for first, second in _batches(np.argwhere(bounds < self.below), over.size):
            longer = np.column_stack((np.tile(steps, (len(first), 1)), first, second))
            self._descend_into(longer, ones[first] + other.rotate(second), bounds[first, second])

    def _pairs(self, ones: Floats, over: Floats, other: _Job, rest: list[_Job]) -> Floats:
        """Return, for the rotations of two jobs, their excess and the least that every later job adds.

        At each of its rotations a later job adds no less beside both than beside either, nor than beside the one and
        the other, less what it adds beside neither and what the two cost each other. This is computed where it can
        still matter.
        """
        self.left -= ones.size
        excess = _excess(ones)[:, None]
        bounds = excess + other.excess_by_rotation(ones)
        if rest:
            others = over + other.rotate(np.arange(other.rotations))
            self.left -= others.size
            overlap = bounds - excess - _excess(others) + _excess(over)
        for job in rest:
            alone, beside_ones, beside_others = (
                job.excess_by_rotation(over[None]),
                job.excess_by_rotation(ones),
                job.excess_by_rotation(others),
            )
            adds = np.maximum(beside_ones.min(axis=1)[:, None], beside_others.min(axis=1))
            for first, second in _batches(np.argwhere(bounds + adds < self.below), job.rotations):
                beside_one, beside_other = beside_ones[first], beside_others[second]
                both = beside_one + beside_other
                both -= alone + overlap[first, second, None]
                np.maximum(both, beside_one, out=both)
                np.maximum(both, beside_other, out=both)
                adds[first, second] = both.min(axis=1)
            bounds += adds
        return np.maximum(bounds, self.floor, out=bounds)

    def _descend_into(self, steps: Ints, over: Floats, bounds: Floats) -> None:
        if steps.shape[1] + 1 < len(self.jobs):
            for some in zip(steps, over, bounds, strict=True):
                self._visit(*some)
        elif not self._can_prune(float(bounds.min())):
            self.left -= over.size
            excess = _excess(over)[:, None] + self.jobs[-1].excess_by_rotation(over)
            self._keep_best(steps, excess, excess.shape[1:])

    def _keep_best(self, steps: Ints, excess: Floats, shape: tuple[int, ...]) -> None:
        """Keep the first of the best, if it is better; `excess` has a row for each of `steps`, others by column."""
        row, column = divmod(int(excess.argmin()), excess.shape[1])
        if excess[row, column] < self.below:
            self.excess = self.below = float(excess[row, column])
            self.steps = np.append(steps[row], np.unravel_index(column, shape))

    def _search_greedily(self) -> None:
        """Place jobs greedily one by one, then move each while that helps; keep the best of some orders."""
        for first in range(len(self.jobs)):
            self._place_greedily(first)
        self.below = self.excess + 1  # so that the smallest rotations that are as good are still found

    def _place_greedily(self, first: int) -> None:
        count, steps, over = len(self.jobs), np.zeros(len(self.jobs), np.int64), self.idle
        excess, unchanged = math.inf, 0
        for turn in itertools.count():
            place = (first + turn) % count
            job = self.jobs[place]
            if turn >= count:
                over = over - job.rotate(steps[place, None])[0]
            steps[place] = job.excess_by_rotation(over[None])[0].argmin()
            over = over + job.rotate(steps[place, None])[0]
            before, excess = excess, float(_excess(over))
            unchanged = unchanged + 1 if excess == before else 0
            if turn >= 2 * count and unchanged >= count:
                break
        if excess < self.excess:
            self.excess, self.steps = excess, steps
