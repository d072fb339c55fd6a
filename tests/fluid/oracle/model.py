# SPDX-License-Identifier: Apache-2.0
"""The oracle of the flow-level engine: the same model, with every stream computed at each event.

Beside flows of cross traffic it advances in steps of the residual capacity (roundabout/models/fluid/cross_traffic.py).
If weights grow while jobs send (`FluidJob.factor`), it advances in an integrator's steps, to TOLERANCE
(rate_integrator.py).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from roundabout.models.fluid.jobs import (
    EQUAL_MS,
    Barrier,
    ComputePhase,
    FluidJob,
    SendPhase,
    Stream,
    merge_workers,
)
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.spec.topology import Direction
from tests.fluid.oracle.rate_integrator import TOLERANCE, integrate_step
from tests.fluid.oracle.rates import Flow, max_min_rates


class Iteration(NamedTuple):
    """One worker's iteration: begin, begin of communication, end, and the delay by the agent, ms."""

    start_ms: float
    compute_end_ms: float
    end_ms: float
    delay_ms: float = 0.0


class Rate(NamedTuple):
    """The rate of a stream in an interval; `job` is the index of its job."""

    job: int
    stream: Stream
    bytes_per_ms: float


class Interval(NamedTuple):
    """The time between two events, and the rates of its active streams, which are means if weights grow."""

    begin_ms: float
    end_ms: float
    rates: tuple[Rate, ...]


def iteration_times(
    jobs: Sequence[FluidJob],
    capacity: Mapping[Direction, float],
    iterations: int,
    congested: float = 1.0,
) -> list[list[float]]:
    """Return the times, ms, of every job's iterations until each job has completed `iterations`.

    Faster jobs continue meanwhile, so lists can be longer than `iterations`; ends of jobs are ignored. An iteration
    lasts as long as its slowest worker's. While several streams need more, a link carries only the share `congested`
    of its capacity; a share below 1 models congestion control that leaves capacity unused.
    """
    runs = [_RunningJob(merge_workers(job)) for job in jobs]
    for _ in _simulate(
        runs, ResidualCapacity.constant(capacity), lambda: all(run.completed >= iterations for run in runs), congested
    ):
        pass
    return [run.times for run in runs]


@dataclass
class Simulation:
    """The simulation of a trial. Iterating over it yields its intervals, and fills `iterations` at the end.

    Every job must end or depart, and have capacity above 0 on its paths.
    """

    jobs: Sequence[FluidJob]
    residual: ResidualCapacity
    congested: float = 1.0
    iterations: list[list[list[Iteration]]] = field(default_factory=list)
    """The completed iterations, by the indices of job and worker."""

    def __iter__(self) -> Iterator[Interval]:
        runs = [_RunningJob(job, job.iterations, job.departs_ms) for job in self.jobs]
        yield from _simulate(runs, self.residual, lambda: all(run.ended for run in runs), self.congested)
        # Where a job departs, some workers may end another one in that instant.
        self.iterations = [[worker.iterations[: run.completed] for worker in run.workers] for run in runs]


def capacity_at(residual: ResidualCapacity, ms: float) -> tuple[dict[Direction, float], float]:
    """Return the capacity of each direction at an instant, and the time, ms, until which it holds."""
    last = max(map(len, residual.bytes_per_ms.values())) - 1
    step = min(int(ms / residual.step_ms + 1e-9), last)
    until = (step + 1) * residual.step_ms if step < last else math.inf
    return {edge: float(rates[min(step, len(rates) - 1)]) for edge, rates in residual.bytes_per_ms.items()}, until


def _simulate(
    runs: "Sequence[_RunningJob]", left: ResidualCapacity, over: Callable[[], bool], congested: float = 1.0
) -> Iterator[Interval]:
    now = 0.0
    capacity, changes = capacity_at(left, now)
    while not over():
        live = [(place, each) for place, run in enumerate(runs) for each in run.live()]
        if live and now >= changes:
            capacity, changes = capacity_at(left, now)

        def next_event(now: float = now, changes: float = changes if live else math.inf) -> float:
            return min(changes, *(run.next_event(now) for run in runs))

        until = _assign_rates([each for _, each in live], capacity, congested, now, next_event)
        yield Interval(now, until, tuple(Rate(place, each.stream, each.rate) for place, each in live))
        for run in runs:
            run.advance(until - now)
        now = until
        for run in runs:
            run.enter_next_phases(now)


def _assign_rates(
    live: "Sequence[_ActiveStream]",
    whole: Mapping[Direction, float],
    congested: float,
    now: float,
    next_event: Callable[[], float],
) -> float:
    """Assign rates to streams, and return until when these hold: the next event, or, while weights grow, less."""
    places = {id(each): place for place, each in enumerate(live)}
    flows = [each.flow(places) for each in live]
    while True:
        capacity = whole if congested == 1 else _congested_capacity(flows, whole, congested)
        _set_rates(live, max_min_rates(flows, capacity))
        before, flows = flows, _with_backlogs(flows, live)
        if congested == 1 or flows == before:
            break  # backlogs get no more from links whose capacity does not depend on demand
    until = next_event()
    tallies = {each.tally for each in live}
    if until <= now + EQUAL_MS or len(tallies) < 2 or not any(tally.job.factor for tally in tallies):
        return until
    rates_after = partial(_rates_after, live, flows, capacity)
    ms, mean_rates = integrate_step(
        rates_after, [TOLERANCE * each.tally.job.iteration_bytes for each in live], until - now
    )
    while True:
        _set_rates(live, mean_rates(ms))
        until_event = next_event() - now
        if any(each.is_overdrawn for each in live):
            ms /= 2  # a backlog came and went within the step: let it come first
        elif until_event < ms - EQUAL_MS:
            ms = max(until_event, EQUAL_MS)
        else:
            return now + ms


def _congested_capacity(
    flows: Sequence[Flow], whole: Mapping[Direction, float], congested: float
) -> dict[Direction, float]:
    """Return the part of their capacity that links carry."""
    wanted: dict[Direction, list[float]] = {}
    for flow in flows:
        for edge in flow.path:
            wanted.setdefault(edge, []).append(flow.demand)
    short = {edge for edge, each in wanted.items() if len(each) > 1 and sum(each) > whole[edge] * (1 + 1e-12)}
    return {edge: rate * congested if edge in short else rate for edge, rate in whole.items()}


def _with_backlogs(flows: Sequence[Flow], live: "Sequence[_ActiveStream]") -> list[Flow]:
    """Return the flows at their rates.

    A flow that gets less than its inflow has a backlog from now on, and demands everything.
    """
    found: list[Flow] = []
    for flow, each in zip(flows, live, strict=True):
        if each.rate < min(flow.demand, each.inflow) * (1 - 1e-12):
            found.append(Flow(flow.path, math.inf, flow.weight, None, flow.priority))
        elif flow.passes_on is None:
            found.append(flow)
        else:
            found.append(replace(flow, demand=found[flow.passes_on].demand))
    return found


def _rates_after(
    live: "Sequence[_ActiveStream]", flows: Sequence[Flow], capacity: Mapping[Direction, float], sent: Sequence[float]
) -> list[float]:
    """Return the rates once each stream has sent so much more."""
    more = dict.fromkeys((each.tally for each in live), 0.0)
    for each, size in zip(live, sent, strict=True):
        more[each.tally] += size
    weights = {tally: tally.weight(size) for tally, size in more.items()}
    weighed = [
        Flow(flow.path, flow.demand, weights[each.tally], flow.passes_on, flow.priority)
        for flow, each in zip(flows, live, strict=True)
    ]
    return max_min_rates(weighed, capacity)


def _set_rates(live: "Sequence[_ActiveStream]", rates: Sequence[float]) -> None:
    for each, rate in zip(live, rates, strict=True):
        each.rate = rate


@dataclass(eq=False)
class _SentBytes:
    """The bytes that a job has sent in one iteration, and the resulting weight."""

    job: FluidJob
    sent: float = 0.0

    def weight(self, more: float = 0.0) -> float:
        """Return the weight once so many more bytes are sent.

        An integration step that is too long may evaluate fewer bytes than none, or more than all.
        """
        if self.job.factor is None:
            return self.job.weight
        share = (self.sent + more) / self.job.iteration_bytes
        return self.job.weight * self.job.factor(min(max(share, 0.0), 1.0))


@dataclass
class _ActiveStream:
    """The unsent bytes of a stream in the current phase. Nothing leaves before its sender has entered the phase."""

    stream: Stream
    tally: _SentBytes
    pace: float
    unproduced: float
    feeder: "_ActiveStream | None"
    has_begun: bool = False
    waiting: float = 0.0
    rate: float = 0.0

    def flow(self, places: Mapping[int, int]) -> Flow:
        first = None if self.waiting > 0 else places.get(id(self.feeder))
        return Flow(self.stream.path, self.demanded_rate, self.tally.weight(), first, self.tally.job.priority)

    @property
    def demanded_rate(self) -> float:
        """Return the rate that it demands; a stream that passes on data demands its inflow."""
        if self.waiting > 0:
            return math.inf
        if self.feeder is None:
            return self.pace
        return self.feeder.demanded_rate if self.feeder.has_begun and not self.feeder.done else 0.0

    @property
    def inflow(self) -> float:
        if self.feeder is not None:
            return self.feeder.rate
        return self.pace if self.unproduced > 0 and self.has_begun else 0.0

    @property
    def is_overdrawn(self) -> bool:
        """Return True if more leaves than there is."""
        return self.waiting <= 0 and self.rate > self.inflow * (1 + 1e-9)

    def _ends(self) -> tuple[float, float]:
        """Return in how many ms data cease to appear, and in how many the backlog is gone."""
        born = (
            self.unproduced / self.pace if self.feeder is None and self.unproduced > 0 and self.has_begun else math.inf
        )
        drain = self.rate - self.inflow
        return born, self.waiting / drain if self.waiting > 0 and drain > 0 else math.inf

    def next_event(self) -> float:
        return min(self._ends())

    def advance(self, ms: float) -> None:
        born, drained = self._ends()
        waits = self.stream.path and drained > ms + EQUAL_MS  # within a host nothing does, what rounding leaves neither
        self.waiting = max(self.waiting + (self.inflow - self.rate) * ms, 0.0) if waits else 0.0
        if self.feeder is None and self.has_begun:
            self.unproduced = 0.0 if born <= ms + EQUAL_MS else self.unproduced - self.pace * ms

    @property
    def done(self) -> bool:
        return self.waiting <= 0 and (self.unproduced <= 0 if self.feeder is None else self.feeder.done)


class _Phase:
    """A phase of a running iteration: its streams, and the workers that have entered and not left it."""

    def __init__(self, send: SendPhase, tally: _SentBytes) -> None:
        self.tally = tally
        self.streams: list[_ActiveStream] = []
        for each in send.streams:
            feeder = None if each.passes_on is None else self.streams[each.passes_on]
            self.streams.append(_ActiveStream(each, tally, each.size / send.alone_ms, each.size, feeder))
        self.entered: set[int] = set()
        self.barriers = list(send.barriers)

    def enter(self, worker: int) -> None:
        self.entered.add(worker)
        for live in self.streams:
            live.has_begun |= live.stream.sender == worker

    def live(self) -> Iterator[_ActiveStream]:
        return (each for each in self.streams if each.has_begun and not each.done)

    def next_event(self) -> float:
        return min([each.next_event() for each in self.streams])

    def advance(self, ms: float) -> None:
        self.tally.sent += sum(each.rate for each in self.streams) * ms
        # A stream reads its feeder's state before the feeder advances. Feeders come first in the list.
        for each in reversed(self.streams):
            each.advance(ms)
        for each in self.streams:
            if each.done:
                each.rate = 0.0

    def released_barriers(self) -> list[Barrier]:
        """Return the barriers that are released, once."""
        done = [barrier for barrier in self.barriers if self._done(barrier)]
        if done:
            self.barriers = [barrier for barrier in self.barriers if barrier not in done]
        return done

    def _done(self, barrier: Barrier) -> bool:
        for place in barrier.awaits:
            live = self.streams[place]
            if not (live.done and live.has_begun and live.stream.receiver in self.entered):
                return False
        return True


@dataclass
class _Worker:
    """The place of a worker: in a phase of an iteration, computing until an instant, or (inf) communicating.

    Before its first phase (-1) it waits for the instant at which an iteration may begin.
    """

    until: float
    started: float
    phase: int = -1
    compute_end: float | None = None
    delay: float = 0.0
    iterations: list[Iteration] = field(default_factory=list)

    def end_iteration(self, now: float, delay: float) -> None:
        compute_end = now if self.compute_end is None else self.compute_end
        self.iterations.append(Iteration(self.started, compute_end, now, self.delay))
        self.started, self.phase, self.compute_end, self.delay = now, -1 if delay else 0, None, delay
        self.until = now + delay


class _RunningJob:
    """A job on its way through its phases."""

    def __init__(self, job: FluidJob, iterations: int | None = None, departs_ms: float | None = None) -> None:
        self.job = job
        self.limit = math.inf if iterations is None else iterations
        self.departs = math.inf if departs_ms is None else departs_ms
        self.workers = [_Worker(job.start_ms, job.start_ms) for _ in range(job.workers)]
        self.phases: dict[tuple[int, int], _Phase] = {}
        self.tallies: dict[int, _SentBytes] = {}  # by iteration
        self.completed = 0  # iterations, by all workers
        self.ended = False

    @property
    def times(self) -> list[float]:
        each = zip(*(worker.iterations for worker in self.workers), strict=False)
        return [max(iteration.end_ms - iteration.start_ms for iteration in workers) for workers in each]

    def live(self) -> Iterator[_ActiveStream]:
        return (each for phase in self.phases.values() for each in phase.live())

    def next_event(self, now: float) -> float:
        if self.ended:
            return math.inf
        until = min(self.departs, *[worker.until for worker in self.workers])
        return min([until, *[now + phase.next_event() for phase in self.phases.values()]])

    def advance(self, ms: float) -> None:
        for phase in self.phases.values():
            phase.advance(ms)

    def enter_next_phases(self, now: float) -> None:
        """Move workers whose computing or communicating is over, and end the job at its end."""
        moved = True
        while moved and not self.ended:
            moved = False
            for number, worker in enumerate(self.workers):
                if worker.until <= now + EQUAL_MS:
                    self._enter_next(number, now)
                    moved = True
            for place, phase in list(self.phases.items()):
                for barrier in phase.released_barriers():
                    for number in barrier.workers:
                        self._enter_next(number, now)
                    moved = True
                if not phase.barriers:
                    del self.phases[place]
            self.ended = self.completed >= self.limit
        if now + EQUAL_MS >= self.departs:
            self.ended = True
        if self.ended:
            self.phases.clear()

    def _enter_next(self, number: int, now: float) -> None:
        worker = self.workers[number]
        worker.phase += 1
        if worker.phase == len(self.job.phases):
            worker.end_iteration(now, self.job.timetable.delay_ms(now) if self.job.timetable else 0.0)
            self.completed = min(len(each.iterations) for each in self.workers)
            self.tallies.pop(self.completed - 1, None)
        begun = len(worker.iterations)
        if begun >= self.limit:
            worker.until = math.inf
            return
        if worker.phase < 0:
            return
        phase = self.job.phases[worker.phase]
        if isinstance(phase, ComputePhase):
            worker.until = now + phase.ms * self.job.stretches[begun % len(self.job.stretches)]
        elif any(number in barrier.workers for barrier in phase.barriers):
            worker.until = math.inf
            worker.compute_end = now if worker.compute_end is None else worker.compute_end
            place = (iteration, _) = begun, worker.phase
            if place not in self.phases:
                tally = self.tallies.setdefault(iteration, _SentBytes(self.job))
                self.phases[place] = _Phase(phase, tally)
            self.phases[place].enter(number)
        else:
            self._enter_next(number, now)
