# SPDX-License-Identifier: Apache-2.0
"""Circles: a job's demand over one iteration, rolled up, and the unified circle of the jobs on one link.

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
"""Largest share by which an iteration time may be stretched or squeezed to fit a unified circle."""

MAX_TURNS = 32
"""Largest number of iterations of one job on a unified circle."""

FINEST_DEG = 0.1
"""Finest allowed precision of sectors, degrees, because memory grows with the square of their number."""

STEPS = 72
"""Number of rotations of the shortest iteration without a requested precision: section 4.5.1's 5 degrees of that
iteration.
"""


@dataclass(frozen=True)
class Arc:
    """An Up phase of positive length: from `begin_ms` to `end_ms` (exclusive) of an iteration, sent at `gbps`."""

    begin_ms: float
    end_ms: float
    gbps: float


@dataclass(frozen=True)
class Circle:
    """One iteration of a job alone, rolled into a circle of perimeter `iteration_ms`, with its Up phases as `arcs`.

    Demands of overlapping arcs add up.

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
        """Return the demand, Gbit/s, at instants within the iteration."""
        demand = np.zeros_like(at_ms)
        for arc in self.arcs:
            demand += arc.gbps * ((arc.begin_ms <= at_ms) & (at_ms < arc.end_ms))
        return demand

    def widen(self, before_ms: float, after_ms: float) -> "Circle":
        """Return the circle with Up phases that begin earlier and end later; the largest of overlapping ones counts."""
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
        """Return the sum of the demand's rises and falls in one iteration, Gbit/s."""
        return sum(2 * arc.gbps for arc in self.arcs if arc.end_ms > arc.begin_ms)


def circle_of(profile: Profile, job: str | None = None) -> Circle:
    """Return the circle of a profile's phases in order, called `job` or else by the profile's name.

    A sending phase becomes an arc at its `demand_gbps`, the rate at which one worker sends to the next. A link between
    two workers carries the demand once in each direction.
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
    """Jobs' circles on a common circle of `perimeter_ms`, on which job i has `turns[i]` iterations."""

    circles: tuple[Circle, ...]
    perimeter_ms: float
    turns: tuple[int, ...]

    @property
    def iterations_ms(self) -> tuple[float, ...]:
        """Return the quantized iteration times, ms, whose least common multiple is the perimeter."""
        return tuple(self.perimeter_ms / turns for turns in self.turns)

    @property
    def errors(self) -> tuple[float, ...]:
        """Return the share by which each iteration time was stretched, or squeezed if negative."""
        pairs = zip(self.iterations_ms, self.circles, strict=True)
        return tuple(quantised / circle.iteration_ms - 1 for quantised, circle in pairs)

    @property
    def drifts_ms(self) -> tuple[float, ...]:
        """Return how much earlier, ms, each job is after one perimeter than on the circle; negative if later."""
        pairs = zip(self.turns, self.circles, strict=True)
        return tuple(self.perimeter_ms - turns * circle.iteration_ms for turns, circle in pairs)

    def sectors(self, precision_deg: float | None = None) -> int:
        """Return the number of sectors, at most `precision_deg` wide, or by default `STEPS` for the shortest iteration.

        Every iteration has a whole number of sectors, unless more than twice as many sectors would be needed.
        """
        if precision_deg is not None and not FINEST_DEG <= precision_deg <= 360:
            expected = f"{FINEST_DEG:g} at least and at most 360"
            raise CassiniError(f"found a precision of {precision_deg:g} degrees, expected {expected}")
        least = STEPS * max(self.turns) if precision_deg is None else math.ceil(360 / precision_deg - 1e-9)
        whole = math.lcm(*self.turns)
        return whole * -(-least // whole) if whole <= least else least

    def demands_gbps(self, sectors: int) -> list[Floats]:
        """Return each job's demand, Gbit/s, in the middle of each sector.

        An array covers one iteration if its number of sectors is whole, else the whole circle.
        """
        demands = []
        for circle, turns in zip(self.circles, self.turns, strict=True):
            middles = np.arange(sectors if sectors % turns else sectors // turns) + 0.5
            demands.append(circle.demand_gbps(middles * turns / sectors % 1 * circle.iteration_ms))
        return demands


def unify(circles: Sequence[Circle], error: float = PERIOD_ERROR, most_turns: int = MAX_TURNS) -> UnifiedCircle:
    """Return the shortest unified circle on which every job has a whole number of iterations.

    Real iteration times have no common multiple, so each is stretched or squeezed by at most the share `error`. The
    largest share is the smallest possible with these turns. No job has more than `most_turns` turns.

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
