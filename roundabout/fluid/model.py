# SPDX-License-Identifier: Apache-2.0
"""Links shared like water: iteration times of jobs whose flows get weighted max-min shares.

Every worker sends to its right neighbour in the ring, on the tree's only path; a link's two directions are separate.
In a phase of B bytes that takes A ms alone, data appear at B / A; what cannot leave at once waits, and leaves as fast
as the worker's max-min share allows. A phase ends when its slowest worker has sent everything.
Rates are constant between events, so the solution is exact: no time step, no packets, no control loop, no jitter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Direction = tuple[str, str]
"""One direction of a link: (from, to)."""

ITERATIONS = 40
"""Iterations that each job completes at least; the second half counts as the steady state."""

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
