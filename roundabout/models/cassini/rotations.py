# SPDX-License-Identifier: Apache-2.0
"""Table 4.1: rotations of the jobs on one link, and their compatibility."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roundabout.models.cassini.circles import Floats, UnifiedCircle
from roundabout.models.cassini.errors import CassiniError
from roundabout.models.cassini.search import best_steps

KBPS_OF_GBPS = 1e6
"""Demands and capacity are rounded to whole kbit/s, so that sums are exact."""

MOST = 500_000_000
"""Sectors looked at, of all rotations tried: some seconds."""


@dataclass(frozen=True)
class Rotations:
    """Jobs of one link, job i rotated by `steps[i]` of the `sectors` of their unified circle.

    `excess_gbps` is the mean over all sectors of what demand exceeds capacity by, and no rotation has less than
    `bound_gbps`: where both are equal, these rotations are the best. `demands_gbps` is of shape (jobs, sectors), before
    rotation. With `strict` every job that sends counts as 1 where there is room for 1 (HotNets'22, section 3).
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
        """Return equation 4.2: 1 for fully compatible jobs, negative if the excess is more than the link."""
        return 1 - self.excess_gbps / self.capacity_gbps

    @property
    def score_bound(self) -> float:
        """Return an upper bound of the score over all rotations."""
        return 1 - self.bound_gbps / self.capacity_gbps

    @property
    def is_best(self) -> bool:
        """Return True if no rotation in whole sectors is better."""
        return self.excess_gbps == self.bound_gbps

    @property
    def score_unrotated(self) -> float:
        """Return the score of jobs that begin their iterations together."""
        return self.score_at([0.0] * len(self.steps))

    def score_at(self, shifts_ms: Sequence[float]) -> float:
        """Return the score with these time-shifts instead, to the nearest sector from the first job's."""
        first_ms, sectors_per_ms = shifts_ms[0], self.sectors / self.unified.perimeter_ms
        steps = [round((shift_ms - first_ms) * sectors_per_ms) for shift_ms in shifts_ms]
        excess = np.maximum(_roll(self.demands_gbps, steps).sum(axis=0) - self.capacity_gbps, 0)
        return 1 - float(excess.mean()) / self.capacity_gbps

    @property
    def score_error(self) -> float:
        """Return the error bound of a score, which counts demand in the middle of sectors only."""
        jobs = zip(self.unified.circles, self.unified.turns, strict=True)
        varies = sum(turns * (2 * len(circle.arcs) if self.strict else circle.variation_gbps) for circle, turns in jobs)
        return varies / (2 * self.sectors * self.capacity_gbps)

    @property
    def degrees(self) -> tuple[float, ...]:
        """Return each job's rotation of the unified circle."""
        return tuple(360 * step / self.sectors for step in self.steps)

    @property
    def shifts_ms(self) -> tuple[float, ...]:
        """Return each job's time-shift (equation 4.5)."""
        iterations = zip(self.steps, self.unified.iterations_ms, strict=True)
        return tuple(step / self.sectors * self.unified.perimeter_ms % iteration for step, iteration in iterations)

    @property
    def rotated_gbps(self) -> Floats:
        """Return demands after rotation, of shape (jobs, sectors)."""
        return _roll(self.demands_gbps, self.steps)


def _roll(demands: Floats, steps: Sequence[int]) -> Floats:
    return np.stack([np.roll(demand, step) for demand, step in zip(demands, steps, strict=True)])


def rotate(
    unified: UnifiedCircle,
    capacity_gbps: float,
    precision_deg: float | None = None,
    *,
    strict: bool = False,
    most: int = MOST,
) -> Rotations:
    """Find the rotations of jobs on one link with the highest score; the first job stays.

    Of ties the smallest rotation is taken of the job that sends most, then of the next.

    Args:
        unified: the jobs on their circle.
        capacity_gbps: of the link, C in Table 4.1.
        precision_deg: sectors are no wider than that; by default the shortest iteration has `STEPS` at least.
        strict: at most one job in each sector, whatever it sends.
        most: how many sectors are looked at, of all rotations tried, before the best so far is returned with its bound.

    Raises:
        CassiniError: a capacity or a precision that is none.
    """
    if not 0 < capacity_gbps < math.inf:
        raise CassiniError(f"found a capacity of {capacity_gbps:g} Gbit/s, expected more than 0")
    sectors = unified.sectors(precision_deg)
    demands = [np.rint(demand * KBPS_OF_GBPS) for demand in unified.demands_gbps(sectors)]
    capacity = max(round(capacity_gbps * KBPS_OF_GBPS), 1)
    if strict:
        demands, capacity = [(demand > 0) * 1.0 for demand in demands], 1
    found = best_steps(demands, unified.turns, sectors, capacity, most)
    unit = 1.0 if strict else 1 / KBPS_OF_GBPS
    whole = np.stack([np.tile(demand, sectors // demand.size) for demand in demands])
    excess, bound = (unit * each / sectors for each in (found.excess, found.bound))
    return Rotations(unified, unit * capacity, strict, sectors, found.steps, excess, bound, unit * whole)
