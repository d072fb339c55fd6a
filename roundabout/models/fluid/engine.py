# SPDX-License-Identifier: Apache-2.0
"""The flow-level engine: iteration times of jobs whose flows get weighted max-min shares, by strict priority.

A link's two directions are separate. In a phase of B bytes that takes A ms alone, data appear at the rate B / A. Data
that cannot leave at once wait, and leave as fast as the stream's max-min share allows. The pattern determines when a
worker ends a phase (jobs.py); the worker then enters the next phase. Rates are constant between events, so the solution
is exact: it has no time step, no packets, no control loop and no jitter.

The engine is written in C++ (roundabout/models/fluid/native), and computes only streams that an event affects;
docs/explanation/flow-level-engine.md explains which these are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from cffi import FFI

from roundabout.models.fluid.jobs import EQUAL_MS, ComputePhase, FluidJob, Path, SendPhase, merge_workers
from roundabout.models.fluid.residual_capacity import Floats, ResidualCapacity
from roundabout.models.native_engine import EngineError, open_library, read_header
from roundabout.spec.topology import Direction

LIBRARY = "build/lib/libfluid.so"

ITERATIONS = 40
"""Default number of iterations that each job completes at least; the second half counts as the steady state."""

INSTANTS = 100_000
"""Number of instants after which the engine returns to Python, so that it can be interrupted: some tenths of a second.
"""

NO_END = 2**63 - 1
"""Number of iterations of a job that does not end after any."""


class Engine:
    """A cluster in simulated time, in which jobs start and end while others run.

    `left` is the residual capacity of links' directions. While several streams need more, they get the share
    `congested` of it. With `sample_ms` the bytes that links have carried are recorded at this interval.

    Raises:
        EngineError: the engine's library is not built.
    """

    def __init__(self, left: ResidualCapacity, *, congested: float = 1.0, sample_ms: float | None = None) -> None:
        declarations, self._library = _open(LIBRARY)
        self._new, self._from_buffer, self._null = declarations.new, declarations.from_buffer, declarations.NULL
        self._edges = {edge: place for place, edge in enumerate(left.bytes_per_ms)}
        self._sampled = sample_ms is not None
        self._jobs: dict[str, FluidJob] = {}
        self._places: dict[str, int] = {}
        self._running: set[str] = set()
        rates = [np.asarray(each, float) for each in left.bytes_per_ms.values()]
        created = self._library.fluid_create(
            self._from_buffer("double[]", np.concatenate([np.empty(0), *rates])),
            self._new("size_t[]", list(map(len, rates))),
            len(rates),
            left.step_ms,
            congested,
            sample_ms or 0.0,
        )
        self._engine = declarations.gc(created, self._library.fluid_free)

    @property
    def now_ms(self) -> float:
        """Return the present simulated time, ms."""
        return float(self._library.fluid_now_ms(self._engine))

    def add(self, name: str, job: FluidJob) -> None:
        """Add a job that begins at its `start_ms`.

        Raises:
            EngineError: the name is in use, the start lies before now, or a stream crosses an unknown link.
        """
        if name in self._jobs:
            raise EngineError(f"job {name}: found a second one of this name, expected one")
        if job.start_ms < self.now_ms:
            raise EngineError(f"job {name}: found a start at {job.start_ms:g} ms, expected {self.now_ms:g} ms or later")
        unknown = sorted(job.edges - self._edges.keys())
        if unknown:
            raise EngineError(
                f"job {name}: found a stream from {' to '.join(unknown[0])}, expected links that there are"
            )
        self._places[name] = self._add(merge_workers(job))
        self._jobs[name] = job
        self._running.add(name)

    def balance(self, up: Sequence[Sequence[Direction]], choices: int, interval_ms: float) -> None:
        """Choose the spines of all streams from now on, whatever their paths say: SGLB (native/spine_groups.hpp).

        Args:
            up: the directions from each leaf to all spines, in one order of spines. Each stream goes up and down again.
            choices: the number of least loaded spines of which a stream takes one.
            interval_ms: the interval at which streams move off other spines.
        """
        ups = [self._edges[edge] for leaf in up for edge in leaf]
        downs = [self._edges[edge[::-1]] for leaf in up for edge in leaf]
        links = self._new("int32_t[]", ups), self._new("int32_t[]", downs), len(ups)
        self._library.fluid_balance(self._engine, *links, len(up[0]), choices, interval_ms)

    def set_capacity(self, edge: Direction, bytes_per_ms: float) -> None:
        """Change the capacity of a direction of a link from now on."""
        self._library.fluid_set_capacity(self._engine, self._edges[edge], bytes_per_ms)

    def reroute(self, name: str, paths: Sequence[Path]) -> None:
        """Give the streams of a job other paths from now on, in the order of the job's `streams`."""
        lengths = self._new("int32_t[]", list(map(len, paths)))
        links = self._new("int32_t[]", [self._edges[edge] for path in paths for edge in path])
        self._library.fluid_reroute(self._engine, self._places[name], lengths, len(paths), links)

    def replace(self, name: str, phases: Sequence[ComputePhase | SendPhase]) -> None:
        """Replace a job's phases, by as many, from the next one that it begins: for example, to move its flows.

        A job whose workers leave phases one by one keeps its own until its iteration ends.

        Raises:
            EngineError: the workers do not all leave the last phase together, or the numbers of phases differ.
        """
        job = self._jobs[name]
        merged = merge_workers(replace(job, phases=tuple(phases)))
        are_together = all(_leave_together(each[-1], job.workers) for each in (job.phases, phases))
        if not are_together or merged.workers != merge_workers(job).workers or len(phases) != len(job.phases):
            raise EngineError(
                f"job {name}: found phases that differ in number, or workers that leave the last one by one, "
                "expected as many phases, the last of which all workers leave together"
            )
        self._library.fluid_replace(self._engine, self._places[name], *self._phases(merged))

    def _add(self, job: FluidJob) -> int:
        return int(
            self._library.fluid_add(
                self._engine,
                self._new("struct fluid_job *", _job_fields(job)),
                self._new("double[]", job.stretches),
                len(job.stretches),
                *self._phases(job),
            )
        )

    def _phases(self, job: FluidJob) -> tuple[Any, ...]:
        """Return a job's phases as arguments of the C API."""
        phases = [_phase_fields(phase) for phase in job.phases]
        sends = [phase for phase in job.phases if isinstance(phase, SendPhase)]
        barriers = [barrier for phase in sends for barrier in phase.barriers]
        streams = [
            (each.sender, each.receiver, -1 if each.passes_on is None else each.passes_on, len(each.path), each.size)
            for each in job.streams
        ]
        return (
            self._new("struct fluid_phase[]", phases),
            len(phases),
            self._new("struct fluid_stream[]", streams),
            self._new("struct fluid_barrier[]", [(len(each.workers), len(each.awaits)) for each in barriers]),
            self._new("int32_t[]", [self._edges[edge] for each in job.streams for edge in each.path]),
            self._new("double[]", [share for each in job.streams for _, share in each.links]),
            self._new("int32_t[]", [place for each in barriers for place in (*each.workers, *each.awaits)]),
        )

    def stop(self, name: str) -> None:
        """End a job now; its incomplete iteration does not count."""
        self._library.fluid_stop(self._engine, self._places[name])
        self._running.discard(name)

    def run(self, until_ms: float) -> tuple[str, ...]:
        """Advance to `until_ms`, or to the first earlier end or departure of jobs, and return these jobs' names."""
        names = list(self._jobs)
        ended = self._new("size_t[]", len(names))
        while True:
            instants = self._new("int64_t *", INSTANTS)
            count = self._library.fluid_run(self._engine, until_ms, instants, ended)
            if count or instants[0]:
                found = tuple(names[place] for place in ended[0:count])
                self._running.difference_update(found)
                return found

    def run_until(self, until_ms: float) -> None:
        """Advance to `until_ms`, or to the end of the last job if that is earlier."""
        while self._running and self.now_ms < until_ms:
            self.run(until_ms)

    def run_to_end(self) -> None:
        """Advance until every job has ended or departed. At least one of both must be set for each job."""
        while self._running:
            self.run(math.inf)

    def completed(self, name: str) -> int:
        """Return the number of iterations that all of the job's workers have completed."""
        return int(self._library.fluid_completed(self._engine, self._places[name]))

    def iterations(self, name: str) -> Floats:
        """Return each worker's completed iterations, as an array of shape (workers, iterations, 6).

        The last axis has begin, first communication, end and the agent's delay, in ms, and the bytes sent and received.
        """
        job, count = self._jobs[name], self.completed(name)
        times = np.empty((merge_workers(job).workers, count, 4))
        into = self._from_buffer("struct fluid_iteration[]", times)
        self._library.fluid_iterations(self._engine, self._places[name], into)
        found = np.zeros((job.workers, count, 6))
        found[:, :, :4] = times
        for stream in job.streams:
            found[stream.sender, :, 4] += stream.size
            found[stream.receiver, :, 5] += stream.size
        return found

    def carried(self) -> Mapping[Direction, Floats]:
        """Return the cumulative bytes of each link's direction at 0, `sample_ms`, 2 `sample_ms` and so on until now.

        Raises:
            EngineError: the engine was created without `sample_ms`.
        """
        if not self._sampled:
            raise EngineError("bytes carried: found an engine without sample_ms, expected one with")
        return {edge: self._carried(place) for edge, place in self._edges.items()}

    def _carried(self, place: int) -> Floats:
        found = np.empty(self._library.fluid_carried(self._engine, place, self._null))
        self._library.fluid_carried(self._engine, place, self._from_buffer("double[]", found))
        return found


def iteration_times(
    jobs: Sequence[FluidJob],
    capacity: Mapping[Direction, float],
    iterations: int = ITERATIONS,
    congested: float = 1.0,
) -> list[list[float]]:
    """Return the times, ms, of every job's iterations until each job has completed `iterations`.

    Faster jobs continue meanwhile, so lists can be longer than `iterations`; ends of jobs are ignored. An iteration
    lasts as long as its slowest worker's. A share `congested` below 1 models congestion control that leaves capacity
    unused while several streams need more.
    """
    return EndlessJobs(jobs, capacity, congested).iteration_times(iterations)


class EndlessJobs:
    """Jobs that all run forever, simulated as far as their iterations are requested."""

    def __init__(self, jobs: Sequence[FluidJob], capacity: Mapping[Direction, float], congested: float = 1.0) -> None:
        endless = [replace(job, iterations=None, departs_ms=None) for job in jobs]
        self._jobs = {str(place): job for place, job in enumerate(endless)}
        self._engine = Engine(
            ResidualCapacity.constant({edge: capacity[edge] for job in endless for edge in job.edges}),
            congested=congested,
        )
        for name, job in self._jobs.items():
            self._engine.add(name, job)

    def iteration_times(self, iterations: int) -> list[list[float]]:
        """Return each job's iteration times, ms, until every job has ended so many iterations."""
        engine = self._engine
        while min(map(engine.completed, self._jobs)) < iterations:
            left = max((iterations - engine.completed(name)) * job.alone_ms for name, job in self._jobs.items())
            engine.run(engine.now_ms + left + max(job.start_ms for job in self._jobs.values()))
        spans = [engine.iterations(name)[:, :, (0, 2)] for name in self._jobs]
        last_ms = max(each[:, iterations - 1, 1].max() for each in spans)
        return [_durations(each, last_ms) for each in spans]


def _durations(spans: Floats, until_ms: float) -> list[float]:
    """Return how long the iterations take that all workers end by `until_ms`; spans: (workers, iterations, 2)."""
    ended = spans[:, :, 1].max(axis=0) <= until_ms + EQUAL_MS
    durations: list[float] = (spans[:, :, 1] - spans[:, :, 0]).max(axis=0)[ended].tolist()
    return durations


@cache
def _open(library: str) -> tuple[FFI, Any]:
    """Return the declarations of the engine's C API, and its library."""
    declarations = read_header("fluid")
    return declarations, open_library("fluid", library, declarations)


def _job_fields(job: FluidJob) -> dict[str, Any]:
    """Return the fields of fluid_job."""
    fields: dict[str, Any] = {
        "workers": job.workers,
        "priority": job.priority,
        "iterations": NO_END if job.iterations is None else job.iterations,
        "weight": job.weight,
        "start_ms": job.start_ms,
        "departs_ms": math.inf if job.departs_ms is None else job.departs_ms,
    }
    if job.factor:
        fields |= {"has_factor": True, "factor": job.factor.coefficients}
    if job.timetable:
        each = job.timetable
        fields |= {
            "has_timetable": True,
            "timetable": (each.shift_ms, each.period_ms, each.threshold_ms, each.late_ms),
        }
    return fields


def _leave_together(phase: ComputePhase | SendPhase, workers: int) -> bool:
    """Return True if all workers leave a phase together."""
    return workers == 1 if isinstance(phase, ComputePhase) else phase.is_left_together(workers)


def _phase_fields(phase: ComputePhase | SendPhase) -> tuple[float, int, int, int]:
    """Return the fields of fluid_phase."""
    if isinstance(phase, ComputePhase):
        return phase.ms, 0, 0, 0
    return phase.alone_ms, 1, len(phase.streams), len(phase.barriers)
