# SPDX-License-Identifier: Apache-2.0
"""Table 4.1: rotations of the jobs on one link or on a bundle of links, and their compatibility."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roundabout.models.cassini.circles import Circle, Floats, UnifiedCircle, unify
from roundabout.models.cassini.errors import CassiniError
from roundabout.models.cassini.search import best_steps

KBPS_OF_GBPS = 1e6
"""Factor from Gbit/s to kbit/s. Demands and capacity are rounded to whole kbit/s, so that sums are exact."""

MAX_ROTATIONS = 500_000_000
"""Largest number of sectors examined over all tried rotations, which takes some seconds."""


@dataclass(frozen=True)
class SharedLink:
    """The circles of jobs that share a link, and the link's capacity."""

    circles: tuple[Circle, ...]
    capacity_gbps: float


@dataclass(frozen=True)
class Rotations:
    """The rotations of the jobs on one link: job i by `steps[i]` of the `sectors` of the unified circle.

    `excess_gbps` is the mean over sectors of the demand beyond the capacity, and `bound_gbps` its lower bound over all
    rotations; if both are equal, these rotations are the best. `demands_gbps`, of shape (jobs, sectors), is before
    rotation. With `strict` each sending job has demand 1 on a link of capacity 1 (HotNets'22, section 3).
    """

    unified: UnifiedCircle
    capacity_gbps: float
    strict: bool
    sectors: int
    steps: tuple[int, ...]
    excess_gbps: float
    bound_gbps: float
    demands_gbps: Floats

    @property
    def score(self) -> float:
        """Return the compatibility score (equation 4.2): 1 for fully compatible jobs, negative for large excess."""
        return 1 - self.excess_gbps / self.capacity_gbps

    @property
    def score_bound(self) -> float:
        """Return an upper bound of the score over all rotations."""
        return 1 - self.bound_gbps / self.capacity_gbps

    @property
    def is_best(self) -> bool:
        """Return True if it is certain that no rotation in whole sectors is better."""
        return self.excess_gbps == self.bound_gbps

    @property
    def score_unrotated(self) -> float:
        """Return the score of jobs that begin their iterations together."""
        return self.score_at([0.0] * len(self.steps))

    def score_at(self, shifts_ms: Sequence[float]) -> float:
        """Return the score with these time-shifts instead, relative to the first job's and rounded to sectors."""
        first_ms, sectors_per_ms = shifts_ms[0], self.sectors / self.unified.perimeter_ms
        steps = [round((shift_ms - first_ms) * sectors_per_ms) for shift_ms in shifts_ms]
        excess = np.maximum(_roll(self.demands_gbps, steps).sum(axis=0) - self.capacity_gbps, 0)
        return 1 - float(excess.mean()) / self.capacity_gbps

    @property
    def score_error(self) -> float:
        """Return the bound of the score's error, which comes from reading demand in the middle of sectors only."""
        jobs = zip(self.unified.circles, self.unified.turns, strict=True)
        varies = sum(turns * (2 * len(circle.arcs) if self.strict else circle.variation_gbps) for circle, turns in jobs)
        return varies / (2 * self.sectors * self.capacity_gbps)

    @property
    def degrees(self) -> tuple[float, ...]:
        """Return each job's rotation in degrees of the unified circle."""
        return tuple(360 * step / self.sectors for step in self.steps)

    @property
    def shifts_ms(self) -> tuple[float, ...]:
        """Return each job's time-shift, ms (equation 4.5)."""
        iterations = zip(self.steps, self.unified.iterations_ms, strict=True)
        return tuple(step / self.sectors * self.unified.perimeter_ms % iteration for step, iteration in iterations)

    @property
    def rotated_gbps(self) -> Floats:
        """Return the demands after rotation, Gbit/s, of shape (jobs, sectors)."""
        return _roll(self.demands_gbps, self.steps)

    def with_steps(self, steps: tuple[int, ...], score_below: float) -> "Rotations":
        """Return other rotations of the jobs, whose score is `score_below` under its upper bound."""
        demands, capacity = (np.rint(each * KBPS_OF_GBPS) for each in (self.demands_gbps, self.capacity_gbps))
        excess = int(np.maximum(_roll(demands, steps).sum(axis=0) - capacity, 0).sum())
        excess_gbps = 1 / KBPS_OF_GBPS * excess / self.sectors
        bound_gbps = excess_gbps - score_below * self.capacity_gbps
        return replace(self, steps=steps, excess_gbps=excess_gbps, bound_gbps=bound_gbps)


def _roll(demands: Floats, steps: Sequence[int]) -> Floats:
    return np.stack([np.roll(demand, step) for demand, step in zip(demands, steps, strict=True)])


def rotate(
    unified: UnifiedCircle,
    capacity_gbps: float,
    precision_deg: float | None = None,
    *,
    strict: bool = False,
    most: int = MAX_ROTATIONS,
) -> Rotations:
    """Find the rotations of jobs on one link with the highest score; the first job is not rotated.

    Of equally good rotations the one is taken that rotates the job with the most demand least, then the next job.

    Args:
        unified: the jobs on their circle.
        capacity_gbps: the link's capacity, C in Table 4.1.
        precision_deg: the largest width of a sector; by default the shortest iteration has `STEPS` sectors at least.
        strict: True to allow at most one sending job in each sector, whatever its demand.
        most: the number of examined sectors, over all tried rotations, after which the best so far is returned.

    Raises:
        CassiniError: the capacity or the precision is not valid.
    """
    capacity, sectors = _capacity_kbps(capacity_gbps), unified.sectors(precision_deg)
    demands = [np.rint(demand * KBPS_OF_GBPS) for demand in unified.demands_gbps(sectors)]
    if strict:
        demands, capacity = [(demand > 0) * 1.0 for demand in demands], 1
    found = best_steps(demands, unified.turns, sectors, capacity, most)
    unit = 1.0 if strict else 1 / KBPS_OF_GBPS
    whole = np.stack([np.tile(demand, sectors // demand.size) for demand in demands])
    excess, bound = (unit * each / sectors for each in (found.excess, found.bound))
    return Rotations(unified, unit * capacity, strict, sectors, found.steps, excess, bound, unit * whole)


def rotate_bundle(
    links: Sequence[SharedLink], precision_deg: float | None = None, *, most: int = MAX_ROTATIONS
) -> tuple[Rotations, ...]:
    """Find the rotations with the highest mean score of links that the same jobs share, and return them by link.

    Jobs are rotated alike on all links. The mean of the links' bounds is the bound of their mean score.

    Args:
        links: the links of a bundle, each with the jobs in the same order.
        precision_deg: see `rotate`.
        most: see `rotate`.

    Raises:
        CassiniError: the jobs fit on no circle, or a capacity or the precision is not valid.
    """
    counts = Counter(links)
    alone = {
        link: rotate(unify(link.circles), link.capacity_gbps, precision_deg, most=most if len(counts) == 1 else 1)
        for link in counts
    }
    if len(counts) == 1:
        return tuple(alone[link] for link in links)
    capacity_gbps, first = max(link.capacity_gbps for link in counts), alone[links[0]]
    relative = [each.demands_gbps * (capacity_gbps / each.capacity_gbps) for each in alone.values()]
    demands = np.rint(np.stack(relative, axis=1) * KBPS_OF_GBPS)
    capacity, every_link = round(capacity_gbps * KBPS_OF_GBPS), [range(len(counts))] * len(demands)
    given = (list(demands), first.unified.turns, first.sectors, capacity, most)
    found = best_steps(*given, crossed=every_link, counts=tuple(counts.values()))
    score_below = (found.excess - found.bound) / (len(links) * first.sectors * capacity)
    rotations = {link: each.with_steps(found.steps, score_below) for link, each in alone.items()}
    return tuple(rotations[link] for link in links)


def _capacity_kbps(capacity_gbps: float) -> int:
    if not 0 < capacity_gbps < math.inf:
        raise CassiniError(f"found a capacity of {capacity_gbps:g} Gbit/s, expected more than 0")
    return max(round(capacity_gbps * KBPS_OF_GBPS), 1)
