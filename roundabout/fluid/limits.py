# SPDX-License-Identifier: Apache-2.0
"""What a trial's jobs would reach if links were shared like water: the limits that measurements are held against.

Cross traffic takes the load asked of it first, evenly: bursts and what it leaves to jobs when links are full are not
in the model. Where it takes all that a direction carries, jobs that need it never end.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from roundabout.fluid.jobs import Compute, FluidJob, Send, fluid_jobs
from roundabout.fluid.model import ITERATIONS, iteration_times
from roundabout.fluid.rates import Direction
from roundabout.spec import Link, TrialSpec

GRID = 32
"""Start offsets tried per job, spread over its iteration, besides those at which communication phases touch."""

BYTES_PER_MS_OF_GBPS = 1e9 / 8 / 1e3


@dataclass(frozen=True)
class Limits:
    """Iteration times of one job: on its own, sharing fairly from a common start, and at the best start offsets.

    Infinite where cross traffic leaves it nothing.
    """

    alone_ms: float
    fair_ms: float
    interleaved_ms: float


NEVER = Limits(math.inf, math.inf, math.inf)


def fluid_limits(spec: TrialSpec, iterations: int = ITERATIONS) -> dict[str, Limits]:
    """The limits of every job in `spec`, by its name, if all of them are there and go on for ever.

    When jobs begin, end and depart is left out of account. The second half of so many `iterations` counts; a job that
    is alone does the same from its first on.
    """
    capacity = left_by_cross_traffic(spec)
    jobs = {name: replace(job, start_ms=0.0) for name, job in fluid_jobs(spec).items()}
    moving = {name: job for name, job in jobs.items() if all(capacity[edge] > 0 for edge in job.edges)}
    found = dict(zip(moving, _limits(tuple(moving.values()), tuple(sorted(capacity.items())), iterations), strict=True))
    return {name: found.get(name, NEVER) for name in jobs}


def left_by_cross_traffic(spec: TrialSpec) -> dict[Direction, float]:
    """Payload in bytes/ms that each direction of each link carries, less what cross traffic takes there.

    A load is that of all receivers together, and each gets an equal part. 0 where cross traffic asks for more.
    """
    left = capacities(spec.topology.links)
    for traffic in spec.cross_traffic.values():
        taken = traffic.load_gbps * BYTES_PER_MS_OF_GBPS / len(traffic.receivers)
        for receiver in traffic.receivers:
            for hop in spec.topology.path(traffic.sender, receiver):
                left[hop.sender, hop.receiver] = max(left[hop.sender, hop.receiver] - taken, 0.0)
    return left


def capacities(links: Iterable[Link]) -> dict[Direction, float]:
    """Payload in bytes/ms that each direction of each link carries."""
    both = ((link, ends) for link in links for ends in (link.ends, link.ends[::-1]))
    return {(a, b): link.payload_rate_gbps * BYTES_PER_MS_OF_GBPS for link, (a, b) in both}


def best_offsets(
    jobs: Sequence[FluidJob],
    capacity: Mapping[Direction, float],
    staying: Sequence[FluidJob] = (),
    iterations: int = ITERATIONS,
) -> tuple[FluidJob, ...]:
    """`jobs` with start offsets under which the sum of their slowdowns against running alone is least, as far as found.

    Jobs are placed one after the other, each at the best of `GRID` offsets over its own iteration and of those where
    one of its communication phases begins as another job's ends. For two jobs that is the grid's optimum, for more a
    greedy one: a limit that may lie above the true one, never below. Those `staying` are beside them as they are.
    The second half of so many `iterations` counts.
    """
    alone = [_steady(iteration_times([job], capacity, iterations)[0]) for job in (*staying, *jobs)]
    placed = list(staying)
    for job, own in zip(jobs, alone[len(staying) :], strict=True):
        best, best_slowdown = job, math.inf
        for offset in _offsets(job, own, placed):
            moved = replace(job, start_ms=offset)
            times = iteration_times([*placed, moved], capacity, iterations)
            slowdown = sum(_steady(each) / base for each, base in zip(times, alone, strict=False))
            if slowdown < best_slowdown - 1e-9:
                best, best_slowdown = moved, slowdown
            if best_slowdown <= len(times) * (1 + 1e-9):
                break  # nobody is slowed down: it cannot get better
        placed.append(best)
    return tuple(placed[len(staying) :])


def _steady(times: Sequence[float]) -> float:
    second_half = times[len(times) // 2 :]
    return sum(second_half) / len(second_half)


@lru_cache(maxsize=64)
def _limits(
    jobs: tuple[FluidJob, ...], capacity: tuple[tuple[Direction, float], ...], iterations: int
) -> tuple[Limits, ...]:
    rates = dict(capacity)
    if len(jobs) == 1:
        return (Limits(*map(_steady, iteration_times(jobs, rates, iterations) * 3)),)
    alone = [iteration_times([job], rates, iterations)[0] for job in jobs]
    fair = iteration_times(jobs, rates, iterations)
    interleaved = iteration_times(best_offsets(jobs, rates, iterations=iterations), rates, iterations)
    return tuple(Limits(*map(_steady, times)) for times in zip(alone, fair, interleaved, strict=True))


def _offsets(job: FluidJob, period_ms: float, placed: Sequence[FluidJob]) -> list[float]:
    """Start offsets worth trying for `job`: those where its communication follows on another's, then an even grid."""
    touching = [
        (other.start_ms + end - begin) % period_ms
        for other in placed
        for _, end in _sending(other)
        for begin, _ in _sending(job)
    ]
    return [*touching, *(period_ms * step / GRID for step in range(GRID))] if placed else [0.0]


def _sending(job: FluidJob) -> list[tuple[float, float]]:
    """Begin and end of the communication phases of an undisturbed iteration, in ms from its start."""
    spans, now = [], 0.0
    for phase in job.phases:
        end = now + (phase.ms if isinstance(phase, Compute) else phase.alone_ms)
        if isinstance(phase, Send):
            spans.append((now, end))
        now = end
    return spans
