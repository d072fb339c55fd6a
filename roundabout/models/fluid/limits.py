# SPDX-License-Identifier: Apache-2.0
"""Flow-level limits of a trial's jobs, with which reports compare measurements.

Cross traffic takes its load first, at a constant rate, because limits have no seed and so no flows. If it takes all of
a direction's capacity, jobs that need the direction never end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from roundabout.models.fluid.contention import contended_groups
from roundabout.models.fluid.cross_traffic import residual_of_loads
from roundabout.models.fluid.engine import ITERATIONS, EndlessJobs, iteration_times
from roundabout.models.fluid.jobs import ComputePhase, FluidJob, SendPhase, fluid_jobs
from roundabout.spec import TrialSpec
from roundabout.spec.topology import Direction

GRID = 32
"""Number of start offsets tried for a job, spread over its iteration, besides those at which communication phases
touch.
"""

MAX_ITERATIONS = 640
"""Number of iterations after which the search for a recurring state ends."""
MAX_TURNS = 4
"""Largest number of the longest job's iterations in a common period that jobs are held to."""
RECURRENCE_TOLERANCE_MS = 1e-6
"""Largest difference between two occurrences of one state, ms: far more than accumulated rounding."""

LARGE = 200
"""Number of streams of jobs above which candidates of start offsets are compared over a fixed number of iterations, as
their search would take minutes. A guess; groups of jobs in the papers' experiments have fewer.
"""

Means = Callable[[Sequence[FluidJob], Mapping[Direction, float]], Sequence[float]]
"""Returns the mean iteration time of each job while all run together, ms."""


@dataclass(frozen=True)
class Limits:
    """Iteration times of one job, ms: alone, sharing fairly from a common start, and interleaved.

    Interleaved jobs have the best start offsets, and may wait before each iteration so that their periods have a common
    multiple: whichever gives the least sum of slowdowns against alone. Times are infinite if cross traffic leaves the
    job no capacity.
    """

    alone_ms: float
    fair_ms: float
    interleaved_ms: float


UNREACHABLE = Limits(math.inf, math.inf, math.inf)


def fluid_limits(spec: TrialSpec, iterations: int = ITERATIONS) -> dict[str, Limits]:
    """Return the limits of every job in `spec`, by its name, for jobs that all run forever.

    Arrivals, ends and departures are ignored. So are MLTCP, priorities and timetables, because shares are fair. Times
    are means over a whole unified period of the jobs' final behavior (`unified_means_ms`), after at least `iterations`.
    A job alone repeats its first iteration.
    """
    capacity = residual_of_loads(spec)
    jobs = {
        name: replace(job, start_ms=0.0, factor=None, priority=0, timetable=None)
        for name, job in fluid_jobs(spec).items()
    }
    moving = {name: job for name, job in jobs.items() if all(capacity[edge] > 0 for edge in job.edges)}
    found: dict[str, Limits] = {}
    for group in contended_groups(moving, capacity):
        edges = sorted({edge for job in group.values() for edge in job.edges})
        rates = tuple((edge, capacity[edge]) for edge in edges)
        found |= zip(group, _limits(tuple(group.values()), rates, iterations), strict=True)
    return {name: found.get(name, UNREACHABLE) for name in jobs}


def unified_means_ms(
    jobs: Sequence[FluidJob], capacity: Mapping[Direction, float], iterations: int = ITERATIONS
) -> tuple[float, ...]:
    """Return the mean iteration time of every job, ms, while all jobs run together forever.

    A mean over a fixed number of iterations depends on where they end, unless periods are multiples of each other. So
    means are over whole unified periods: from an iteration of the first job to a later one at which all jobs are in the
    same relative state. If no state recurs, as with periods without a common multiple, the second half of
    `MAX_ITERATIONS` iterations counts.
    """
    return _means_ms(*_run_until_recurrence(jobs, capacity, iterations))


def steady_means_ms(
    jobs: Sequence[FluidJob], capacity: Mapping[Direction, float], iterations: int
) -> tuple[float, ...]:
    """Return the mean of every job's iteration times, ms, over the second half of at least `iterations`."""
    return tuple(map(_is_steady_mean, iteration_times(jobs, capacity, iterations)))


def best_offsets(
    jobs: Sequence[FluidJob],
    capacity: Mapping[Direction, float],
    staying: Sequence[FluidJob] = (),
    means_ms: Means = unified_means_ms,
) -> tuple[FluidJob, ...]:
    """Return `jobs` with the start offsets, of those tried, that have the least sum of slowdowns against running alone.

    Jobs are placed one after the other. Each tries `GRID` offsets over its iteration, and offsets at which one of its
    communication phases begins as another job's ends. The result is the grid's optimum for two jobs, and greedy for
    more, so the limit may be too high but never too low. Jobs in `staying` run besides, unchanged. Slowdowns are ratios
    of `means_ms`, by default over whole unified periods.
    """
    alone = [means_ms([job], capacity)[0] for job in (*staying, *jobs)]
    placed = list(staying)
    for job, own in zip(jobs, alone[len(staying) :], strict=True):
        best, best_slowdown = job, math.inf
        for offset in _candidate_offsets(job, own, placed):
            moved = replace(job, start_ms=offset)
            together = means_ms([*placed, moved], capacity)
            slowdown = sum(mean / base for mean, base in zip(together, alone, strict=False))
            if slowdown < best_slowdown - 1e-9:
                best, best_slowdown = moved, slowdown
            if best_slowdown <= len(together) * (1 + 1e-9):
                break  # no job is slowed down, so no better offsets exist
        placed.append(best)
    return tuple(placed[len(staying) :])


def _run_until_recurrence(
    jobs: Sequence[FluidJob], capacity: Mapping[Direction, float], iterations: int
) -> tuple[list[list[float]], list[slice] | None]:
    """Return iteration times by job until a state recurs, and their last unified period; None if it never does."""
    endless = EndlessJobs(jobs, capacity)
    while True:
        times = endless.iteration_times(iterations)
        period = unified_period([job.start_ms for job in jobs], times)
        if period is not None or iterations >= MAX_ITERATIONS:
            return times, period
        iterations = min(2 * iterations, MAX_ITERATIONS)


def _means_ms(times: Sequence[Sequence[float]], period: Sequence[slice] | None) -> tuple[float, ...]:
    if period is None:
        return tuple(map(_is_steady_mean, times))
    return tuple(float(np.mean(each[own])) for each, own in zip(times, period, strict=True))


def unified_period(starts_ms: Sequence[float], times: Sequence[Sequence[float]]) -> list[slice] | None:
    """Return the slice of each job's iterations from the last recurring state in the second half to its recurrence.

    `starts_ms` are the jobs' starts, and `times` their iteration times, ms. None if no state recurs.
    """
    begins = [start + np.concatenate([[0.0], np.cumsum(each)]) for start, each in zip(starts_ms, times, strict=True)]
    until = min(each[-1] for each in begins)
    first = begins[0][begins[0] <= until + RECURRENCE_TOLERANCE_MS]
    places = [np.searchsorted(each, first + RECURRENCE_TOLERANCE_MS) - 1 for each in begins]
    since_ms = np.stack([first - each[place] for each, place in zip(begins, places, strict=True)])
    alike = np.abs(since_ms - since_ms[:, -1:]).max(axis=0) < RECURRENCE_TOLERANCE_MS
    half = len(first) // 2
    recurred = half + np.flatnonzero(alike[half:-1])
    if len(recurred) == 0:
        return None
    return [slice(int(place[recurred[-1]]), int(place[-1])) for place in places]


def _is_steady_mean(times: Sequence[float]) -> float:
    second_half = times[len(times) // 2 :]
    return sum(second_half) / len(second_half)


@lru_cache(maxsize=64)
def _limits(
    jobs: tuple[FluidJob, ...], capacity: tuple[tuple[Direction, float], ...], iterations: int
) -> tuple[Limits, ...]:
    rates = dict(capacity)
    if not jobs:
        return ()
    if len(jobs) == 1:
        return (Limits(*steady_means_ms(jobs, rates, iterations) * 3),)
    means_ms = partial(unified_means_ms, iterations=iterations)
    alone = [means_ms([job], rates)[0] for job in jobs]
    together = _run_until_recurrence(jobs, rates, iterations)
    fair = _means_ms(*together)
    # A candidate gets fewer than `MAX_ITERATIONS` iterations if periods have no common multiple, because the jobs then
    # slide past each other. With many streams, a candidate whose states do not recur would take half a second.
    slides, is_large = together[1] is None, sum(len(job.streams) for job in jobs) > LARGE
    tried_ms = partial(steady_means_ms, iterations=iterations) if slides or is_large else means_ms
    groups = dict.fromkeys([jobs, _hold(jobs, alone)])  # one, if the jobs have a common period
    ways = [*(means_ms(best_offsets(group, rates, means_ms=tried_ms), rates) for group in groups), fair]
    interleaved = min(ways, key=lambda times: _slowdowns(times, alone))
    return tuple(Limits(*times) for times in zip(alone, fair, interleaved, strict=True))


def common_periods_ms(alone_ms: Sequence[float]) -> list[float]:
    """Return a period for each job, no shorter than alone, of which whole numbers take equally long.

    The longest job takes part with 1 to `MAX_TURNS` iterations: with as many as stretch all jobs least in sum.
    """
    found = []
    for turns in range(1, MAX_TURNS + 1):
        counts = [max(round(turns * max(alone_ms) / own), 1) for own in alone_ms]
        unified = max(count * own for count, own in zip(counts, alone_ms, strict=True))
        found.append([unified / count for count in counts])
    return min(found, key=lambda periods: _slowdowns(periods, alone_ms))


def _slowdowns(times_ms: Sequence[float], alone_ms: Sequence[float]) -> float:
    return sum(own / alone for own, alone in zip(times_ms, alone_ms, strict=True))


def _hold(jobs: Sequence[FluidJob], alone_ms: Sequence[float]) -> tuple[FluidJob, ...]:
    """Return jobs that wait before each iteration for as long as their common periods exceed their times alone."""
    waits = (period - own for period, own in zip(common_periods_ms(alone_ms), alone_ms, strict=True))
    return tuple(
        replace(job, phases=(ComputePhase(wait), *job.phases)) if wait > RECURRENCE_TOLERANCE_MS else job
        for job, wait in zip(jobs, waits, strict=True)
    )


def _candidate_offsets(job: FluidJob, period_ms: float, placed: Sequence[FluidJob]) -> list[float]:
    """Return start offsets worth trying for `job`.

    Those where its communication follows another's, then an even grid.
    """
    touching = [
        (other.start_ms + end - begin) % period_ms
        for other in placed
        for _, end in _communication_intervals(other)
        for begin, _ in _communication_intervals(job)
    ]
    if not placed:
        return [0.0]
    return [*dict.fromkeys([*touching, *(period_ms * step / GRID for step in range(GRID))])]


def _communication_intervals(job: FluidJob) -> list[tuple[float, float]]:
    """Return begin and end of the communication phases of an undisturbed iteration, in ms from its start."""
    spans, now = [], 0.0
    for phase in job.phases:
        end = now + (phase.ms if isinstance(phase, ComputePhase) else phase.alone_ms)
        if isinstance(phase, SendPhase):
            spans.append((now, end))
        now = end
    return spans
