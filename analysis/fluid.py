# SPDX-License-Identifier: Apache-2.0
"""What a trial's jobs would reach if links were shared like water: the limits that measurements are held against.

Every worker sends to its right neighbour in the ring, on the tree's only path; a link's two directions are separate.
In a phase of B bytes that takes A ms alone, data appear at B / A; what cannot leave at once waits, and leaves as fast
as the worker's max-min share allows. A phase ends when its slowest worker has sent everything.
Cross traffic takes the load asked of it first, evenly: bursts and what it leaves to jobs when links are full are not
in the model. Where it takes all that a direction carries, jobs that need it never end.
Rates are constant between events, so the solution is exact: no time step, no packets, no control loop, no jitter.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from roundabout.spec import Link, Phase, TrialSpec

Direction = tuple[str, str]
"""One direction of a link: (from, to)."""

ITERATIONS = 40
"""Iterations that each job completes at least; the second half counts as the steady state."""
GRID = 32
"""Start offsets tried per job, spread over its iteration, besides those at which communication phases touch."""

BYTES_PER_MS_OF_GBPS = 1e9 / 8 / 1e3
_SAME_MS = 1e-9


@dataclass(frozen=True)
class Flow:
    """One worker's traffic at an instant: its path, what it wants (bytes/ms; inf: all there is), its connections."""

    path: tuple[Direction, ...]
    wanted: float
    weight: float = 1.0


@dataclass(frozen=True)
class Compute:
    """A phase without traffic."""

    ms: float


@dataclass(frozen=True)
class Send:
    """A phase in which each worker sends `size` bytes, which appear evenly over `alone_ms`."""

    size: float
    alone_ms: float


@dataclass(frozen=True)
class FluidJob:
    """A job as the model sees it: one path per worker, and the phases of an iteration."""

    phases: tuple[Compute | Send, ...]
    paths: tuple[tuple[Direction, ...], ...]
    weight: float = 1.0
    start_ms: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Iteration times of one job: on its own, sharing fairly from a common start, and at the best start offsets.

    Infinite where cross traffic leaves it nothing.
    """

    alone_ms: float
    fair_ms: float
    interleaved_ms: float


NEVER = Limits(math.inf, math.inf, math.inf)


def max_min_rates(flows: Sequence[Flow], capacity: Mapping[Direction, float]) -> list[float]:
    """Weighted max-min fair rates (bytes/ms) by progressive filling; `capacity` in bytes/ms per direction of a link."""
    rates = [0.0] * len(flows)
    left = dict(capacity)
    active = set(range(len(flows)))
    while active:
        weights: dict[Direction, float] = {}
        for i in active:
            for edge in flows[i].path:
                weights[edge] = weights.get(edge, 0.0) + flows[i].weight
        levels = {edge: max(left[edge], 0.0) / weight for edge, weight in weights.items()}
        level = min((*levels.values(), *(flows[i].wanted / flows[i].weight for i in active)))
        full = {edge for edge, reached in levels.items() if reached <= level * (1 + 1e-12)}
        for i in sorted(active):
            satisfied = flows[i].wanted <= level * flows[i].weight * (1 + 1e-12)
            if satisfied or not full.isdisjoint(flows[i].path):
                rates[i] = flows[i].wanted if satisfied else level * flows[i].weight
                active.remove(i)
                for edge in flows[i].path:
                    left[edge] -= rates[i]
    return rates


def iteration_times(
    jobs: Sequence[FluidJob], capacity: Mapping[Direction, float], iterations: int = ITERATIONS
) -> list[list[float]]:
    """Durations in ms of every job's iterations, while they run together until each has completed `iterations`.

    Quicker jobs go on meanwhile, so the lists can be longer than `iterations`.
    """
    runs = [_Running(job) for job in jobs]
    now = 0.0
    while any(len(run.times) < iterations for run in runs):
        flows = [flow for run in runs for flow in run.flows]
        wanted = [Flow(flow.path, flow.wanted, flow.weight) for flow in flows]
        for flow, rate in zip(flows, max_min_rates(wanted, capacity), strict=True):
            flow.rate = rate
        until = min(run.next_event(now) for run in runs)
        for flow in flows:
            flow.advance(until - now)
        now = until
        for run in runs:
            run.settle(now)
    return [run.times for run in runs]


def fluid_limits(spec: TrialSpec) -> dict[str, Limits]:
    """The limits of every job in `spec`, by its name; start offsets in the spec are left out of account."""
    capacity = left_by_cross_traffic(spec)
    jobs = {
        name: FluidJob(
            phases=tuple(_phase(phase) for phase in job.profile.phases),
            paths=tuple(
                tuple((hop.sender, hop.receiver) for hop in spec.topology.path(*neighbours)) for neighbours in job.ring
            ),
            weight=float(job.flows),
        )
        for name, job in spec.jobs.items()
    }
    moving = {name: job for name, job in jobs.items() if all(capacity[edge] > 0 for path in job.paths for edge in path)}
    found = dict(zip(moving, _limits(tuple(moving.values()), tuple(sorted(capacity.items()))), strict=True))
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


def best_offsets(jobs: Sequence[FluidJob], capacity: Mapping[Direction, float]) -> tuple[FluidJob, ...]:
    """`jobs` with start offsets under which the sum of their slowdowns against running alone is least, as far as found.

    Jobs are placed one after the other, each at the best of `GRID` offsets over its own iteration and of those where
    one of its communication phases begins as another job's ends. For two jobs that is the grid's optimum, for more a
    greedy one: a limit that may lie above the true one, never below.
    """
    alone = [_steady(iteration_times([job], capacity)[0]) for job in jobs]
    placed: list[FluidJob] = []
    for job, own in zip(jobs, alone, strict=True):
        best, best_slowdown = job, math.inf
        for offset in _offsets(job, own, placed):
            moved = replace(job, start_ms=offset)
            times = iteration_times([*placed, moved], capacity)
            slowdown = sum(_steady(each) / base for each, base in zip(times, alone, strict=False))
            if slowdown < best_slowdown - 1e-9:
                best, best_slowdown = moved, slowdown
            if best_slowdown <= len(times) * (1 + 1e-9):
                break  # nobody is slowed down: it cannot get better
        placed.append(best)
    return tuple(placed)


@dataclass
class _Stream:
    """What one worker has still to send in the current phase."""

    path: tuple[Direction, ...]
    weight: float
    pace: float
    unborn: float
    waiting: float = 0.0
    rate: float = 0.0

    @property
    def wanted(self) -> float:
        return math.inf if self.waiting > 0 else self.pace

    def _ends(self) -> tuple[float, float]:
        """In how many ms data cease to appear, and in how many the backlog is gone."""
        born = self.unborn / self.pace if self.unborn > 0 else math.inf
        drain = self.rate - (self.pace if self.unborn > 0 else 0.0)
        return born, self.waiting / drain if self.waiting > 0 and drain > 0 else math.inf

    def next_event(self) -> float:
        return min(self._ends())

    def advance(self, ms: float) -> None:
        born, drained = self._ends()
        growth = (self.pace if self.unborn > 0 else 0.0) - self.rate
        self.waiting = 0.0 if drained <= ms + _SAME_MS else max(self.waiting + growth * ms, 0.0)
        self.unborn = 0.0 if born <= ms + _SAME_MS else self.unborn - self.pace * ms

    @property
    def done(self) -> bool:
        return self.unborn <= 0 and self.waiting <= 0


@dataclass
class _Running:
    """A job on its way through its phases."""

    job: FluidJob
    index: int = -1
    until: float = 0.0
    started: float = 0.0
    flows: list[_Stream] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.until = self.started = self.job.start_ms

    def next_event(self, now: float) -> float:
        return now + min(flow.next_event() for flow in self.flows) if self.flows else self.until

    def settle(self, now: float) -> None:
        """Drop what has finished, and enter the next phase when the current one is over."""
        sending = bool(self.flows)
        self.flows = [flow for flow in self.flows if not flow.done]
        if not self.flows and (sending or self.until <= now + _SAME_MS):
            self._enter_next(now)

    def _enter_next(self, now: float) -> None:
        self.index += 1
        if self.index == len(self.job.phases):
            self.times.append(now - self.started)
            self.started, self.index = now, 0
        phase = self.job.phases[self.index]
        if isinstance(phase, Compute):
            self.until = now + phase.ms
        else:
            pace = phase.size / phase.alone_ms
            self.flows = [_Stream(path, self.job.weight, pace, phase.size) for path in self.job.paths]


def _steady(times: Sequence[float]) -> float:
    second_half = times[len(times) // 2 :]
    return sum(second_half) / len(second_half)


@lru_cache(maxsize=64)
def _limits(jobs: tuple[FluidJob, ...], capacity: tuple[tuple[Direction, float], ...]) -> tuple[Limits, ...]:
    rates = dict(capacity)
    if len(jobs) == 1:
        return (Limits(*map(_steady, iteration_times(jobs, rates) * 3)),)
    alone = [iteration_times([job], rates)[0] for job in jobs]
    fair = iteration_times(jobs, rates)
    interleaved = iteration_times(best_offsets(jobs, rates), rates)
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


def _phase(phase: Phase) -> Compute | Send:
    if phase.compute_ms is not None:
        return Compute(phase.compute_ms)
    assert phase.bytes is not None
    assert phase.alone_ms is not None
    return Send(float(phase.bytes), phase.alone_ms)
