# SPDX-License-Identifier: Apache-2.0
"""Circles: a job's demand rolled around its iteration, and the unified circle of the jobs on one link.

Source: the interleaving thesis, sections 4.3.1 to 4.3.5; how its equations are read is in docs/explanation/cassini.md.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roundabout.models.cassini.errors import CassiniError
from roundabout.spec import Profile

Floats = npt.NDArray[np.float64]

PERIOD_ERROR = 0.01
"""By which share of itself an iteration time may be stretched or squeezed to fit a whole number of times."""

MOST_TURNS = 32
"""Iterations of one job on a unified circle."""

FINEST_DEG = 0.1
"""Memory grows with the square of sectors."""

STEPS = 72
"""Rotations of the shortest iteration where no precision is asked for: the 5 degrees of section 4.5.1, of its own."""


@dataclass(frozen=True)
class Arc:
    """An Up phase: from `begin_ms` of an iteration to before `end_ms`, sent at `gbps`, of positive length."""

    begin_ms: float
    end_ms: float
    gbps: float


@dataclass(frozen=True)
class Circle:
    """One iteration of a job alone, rolled: its perimeter is `iteration_ms`, its Up phases are `arcs`.

    Where arcs overlap, their demands add up.

    Raises:
        CassiniError: an iteration without length, or an arc that does not lie on it.
    """

    job: str
    iteration_ms: float
    arcs: tuple[Arc, ...]

    def __post_init__(self) -> None:
        if not 0 < self.iteration_ms < math.inf:
            raise CassiniError(f"{self.job}: found an iteration of {self.iteration_ms:g} ms, expected one that lasts")
        for arc in self.arcs:
            if not (0 <= arc.begin_ms <= arc.end_ms <= self.iteration_ms and 0 <= arc.gbps < math.inf):
                found = f"an Up phase from {arc.begin_ms:g} to {arc.end_ms:g} ms at {arc.gbps:g} Gbit/s"
                raise CassiniError(f"{self.job}: found {found}, expected it within 0 and {self.iteration_ms:g} ms")

    def degrees(self, ms: float) -> float:
        """Return the angle of an instant of the iteration."""
        return 360 * ms / self.iteration_ms

    def demand_gbps(self, at_ms: Floats) -> Floats:
        """Return the demand at instants within the iteration."""
        demand = np.zeros_like(at_ms)
        for arc in self.arcs:
            demand += arc.gbps * ((arc.begin_ms <= at_ms) & (at_ms < arc.end_ms))
        return demand

    def widen(self, before_ms: float, after_ms: float) -> "Circle":
        """Return the circle with Up phases that begin earlier and end later; where some overlap, the largest counts."""
        whole = self.iteration_ms
        before_ms, after_ms = min(before_ms, whole), min(after_ms, whole)
        sends = [arc for arc in self.arcs if arc.end_ms > arc.begin_ms]
        around = [Arc(arc.begin_ms - before_ms, arc.end_ms + after_ms, arc.gbps) for arc in sends]
        edges = sorted({0.0, whole, *(edge % whole for arc in around for edge in (arc.begin_ms, arc.end_ms))})
        arcs = []
        for begin, end in itertools.pairwise(edges):
            middles = [(begin + end) / 2 + turn * whole for turn in (-1, 0, 1)]
            most = max((arc.gbps for arc in around for at in middles if arc.begin_ms <= at < arc.end_ms), default=0.0)
            arcs += [Arc(begin, end, most)] if most else []
        return Circle(self.job, whole, tuple(arcs))

    @property
    def variation_gbps(self) -> float:
        """Return the sum of the demand's rises and falls in one iteration."""
        return sum(2 * arc.gbps for arc in self.arcs if arc.end_ms > arc.begin_ms)


def circle_of(profile: Profile, job: str | None = None) -> Circle:
    """Return the circle of a profile's phases in their order; `job` is its name, the profile's unless given.

    A phase that sends is an arc at its `demand_gbps`: what one worker sends to the next, so once each way on a link
    between two.
    """
    ends = list(itertools.accumulate(phase.duration_ms for phase in profile.phases))
    arcs = (
        Arc(end - phase.duration_ms, end, phase.demand_gbps)
        for end, phase in zip(ends, profile.phases, strict=True)
        if phase.bytes is not None
    )
    return Circle(job or profile.name, ends[-1], tuple(arcs))


@dataclass(frozen=True)
class UnifiedCircle:
    """Circles on one circle of a common `perimeter_ms`, on which job i turns `turns[i]` times."""

    circles: tuple[Circle, ...]
    perimeter_ms: float
    turns: tuple[int, ...]

    @property
    def iterations_ms(self) -> tuple[float, ...]:
        """Return quantized iteration times, whose least common multiple is the perimeter."""
        return tuple(self.perimeter_ms / turns for turns in self.turns)

    @property
    def errors(self) -> tuple[float, ...]:
        """Return the share by which each iteration time was stretched (squeezed if negative)."""
        pairs = zip(self.iterations_ms, self.circles, strict=True)
        return tuple(quantised / circle.iteration_ms - 1 for quantised, circle in pairs)

    @property
    def drifts_ms(self) -> tuple[float, ...]:
        """Return how much earlier than on the circle each job is after one perimeter (later if negative)."""
        pairs = zip(self.turns, self.circles, strict=True)
        return tuple(self.perimeter_ms - turns * circle.iteration_ms for turns, circle in pairs)

    def sectors(self, precision_deg: float | None = None) -> int:
        """Return the number of sectors: none wider than `precision_deg`, or `STEPS` for the shortest iteration.

        Every iteration is whole sectors, unless that takes more than twice as many.
        """
        if precision_deg is not None and not FINEST_DEG <= precision_deg <= 360:
            expected = f"{FINEST_DEG:g} at least and at most 360"
            raise CassiniError(f"found a precision of {precision_deg:g} degrees, expected {expected}")
        least = STEPS * max(self.turns) if precision_deg is None else math.ceil(360 / precision_deg - 1e-9)
        whole = math.lcm(*self.turns)
        return whole * -(-least // whole) if whole <= least else least

    def demands_gbps(self, sectors: int) -> list[Floats]:
        """Return each job's demand in the middle of each sector.

        Of one iteration if that is whole sectors, else of all.
        """
        demands = []
        for circle, turns in zip(self.circles, self.turns, strict=True):
            middles = np.arange(sectors if sectors % turns else sectors // turns) + 0.5
            demands.append(circle.demand_gbps(middles * turns / sectors % 1 * circle.iteration_ms))
        return demands


def unify(circles: Sequence[Circle], error: float = PERIOD_ERROR, most_turns: int = MOST_TURNS) -> UnifiedCircle:
    """Return the shortest unified circle on which every job turns a whole number of times.

    Real iteration times have no common multiple, so each is stretched or squeezed, by the share `error` at most: the
    largest such share is as small as it can be with these turns. No job turns more than `most_turns` times.

    Raises:
        CassiniError: there is no such circle, or no job.
    """
    if not circles:
        raise CassiniError("found no job, expected one at least")
    times = [circle.iteration_ms for circle in circles]
    for turns in range(1, most_turns + 1):
        near = [_multiples(time, turns * max(times), most_turns) for time in times]
        off, chosen = min(
            ((_largest_error(times, each), each) for each in itertools.product(*near)), default=(math.inf, ())
        )
        if off <= error + 1e-12:
            around = [time * count for time, count in zip(times, chosen, strict=True)]
            perimeter_ms = 2 * max(around) * min(around) / (max(around) + min(around))
            return UnifiedCircle(tuple(circles), perimeter_ms, chosen)
    named = ", ".join(f"{circle.job} {circle.iteration_ms:g} ms" for circle in circles)
    raise CassiniError(
        f"found no common multiple of the iteration times ({named}), expected one within {most_turns} iterations "
        f"of each, where none is off by more than {100 * error:g} %"
    )


def _multiples(time_ms: float, near_ms: float, most: int) -> tuple[int, ...]:
    """Return how many times an iteration just fits, and just does not."""
    below = math.floor(near_ms / time_ms + 1e-12)
    return tuple(count for count in (below, below + 1) if 0 < count <= most)


def _largest_error(times_ms: Sequence[float], turns: Sequence[int]) -> float:
    """Return the largest relative error of the perimeter for which it is smallest."""
    around = [time * count for time, count in zip(times_ms, turns, strict=True)]
    return (max(around) - min(around)) / (max(around) + min(around))
