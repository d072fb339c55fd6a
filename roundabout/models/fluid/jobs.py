# SPDX-License-Identifier: Apache-2.0
"""Jobs in the flow-level model: phases of streams between workers, each on the tree's only path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from roundabout.models.fluid.mltcp import Factor, factor_of
from roundabout.models.fluid.rates import Direction
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import Timetable
from roundabout.spec.experiment import ResolvedJob
from roundabout.spec.patterns import Transfer
from roundabout.spec.topology import Topology

Path = tuple[Direction, ...]


@dataclass(frozen=True)
class ComputePhase:
    """A phase without traffic."""

    ms: float


@dataclass(frozen=True)
class Stream:
    """The bytes that one worker sends another in a phase.

    `size` bytes, which appear evenly over the phase's `alone_ms`.

    With `passes_on`, the place of an earlier stream of the phase, they appear as that one's arrive.
    """

    sender: int
    receiver: int
    path: Path
    size: float
    passes_on: int | None = None


@dataclass(frozen=True)
class Barrier:
    """Workers that leave a phase together, and the streams (their places) that must have ended before."""

    workers: tuple[int, ...]
    awaits: tuple[int, ...]


@dataclass(frozen=True)
class SendPhase:
    """A phase of streams. Workers without a barrier take no part in it."""

    streams: tuple[Stream, ...]
    alone_ms: float
    parties: tuple[Barrier, ...]


@dataclass(frozen=True)
class FluidJob:
    """A job of some workers: the phases of an iteration, weight and priority of its streams, and its begin.

    It runs forever, unless it ends after `iterations` or departs at an instant. A `factor` multiplies the weight, by
    the part of the iteration's bytes that all of its workers together have sent. A `timetable` delays iterations;
    waiting counts as a part of them. Computing times of iteration i are multiplied by `stretches[i]`, cyclically.
    """

    phases: tuple[ComputePhase | SendPhase, ...]
    workers: int
    weight: float = 1.0
    priority: int = 0
    start_ms: float = 0.0
    iterations: int | None = None
    departs_ms: float | None = None
    factor: Factor | None = None
    timetable: Timetable | None = None
    stretches: tuple[float, ...] = (1.0,)

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """Return all streams of an iteration."""
        return tuple(stream for phase in self.phases if isinstance(phase, SendPhase) for stream in phase.streams)

    @cached_property
    def edges(self) -> frozenset[Direction]:
        """Return every direction of a link that the job needs."""
        return frozenset(edge for stream in self.streams for edge in stream.path)

    @cached_property
    def iteration_bytes(self) -> float:
        """Return the bytes of all of its streams in an iteration."""
        return sum(stream.size for stream in self.streams)


def merge_workers(job: FluidJob) -> FluidJob:
    """Return the job with one worker in place of all, if all of them always leave a phase together.

    Quicker to compute.
    """
    sends = [phase for phase in job.phases if isinstance(phase, SendPhase)]
    if not all(len(phase.parties) == 1 and len(phase.parties[0].workers) == job.workers for phase in sends):
        return job
    phases = tuple(_merge_phase(phase) if isinstance(phase, SendPhase) else phase for phase in job.phases)
    return replace(job, workers=1, phases=phases)


def _merge_phase(phase: SendPhase) -> SendPhase:
    streams = tuple(replace(stream, sender=0, receiver=0) for stream in phase.streams)
    return SendPhase(streams, phase.alone_ms, (Barrier((0,), phase.parties[0].awaits),))


def fluid_jobs(spec: TrialSpec) -> dict[str, FluidJob]:
    """Return the jobs of a trial by name, each with its place in the trial's time."""
    return {
        name: fluid_job(job, spec.topology, spec.iterations_of(name), spec.queue_of_priority.get(job.priority or 0, 0))
        for name, job in spec.jobs.items()
    }


def fluid_job(job: ResolvedJob, topology: Topology, iterations: int, priority: int = 0) -> FluidJob:
    """Return a job on its hosts; `priority` is the place of its queue."""
    phases: list[ComputePhase | SendPhase] = []
    for phase in job.profile.phases:
        if phase.compute_ms is not None:
            phases.append(ComputePhase(phase.compute_ms))
            continue
        assert phase.alone_ms is not None
        transfers = job.transfers(phase)
        ends = [(job.workers[each.sender], job.workers[each.receiver]) for each in transfers]
        paths = [tuple((hop.sender, hop.receiver) for hop in topology.path(*pair)) for pair in ends]
        phases.append(make_send_phase(transfers, paths, phase.alone_ms))
    return FluidJob(
        phases=tuple(phases),
        workers=len(job.workers),
        weight=float(job.flows),
        priority=priority,
        start_ms=job.begins_ms,
        iterations=iterations,
        departs_ms=job.departs_ms,
        factor=factor_of(job.transport),
        timetable=job.held_timetable,
    )


def make_send_phase(transfers: Sequence[Transfer], paths: Sequence[Path], alone_ms: float) -> SendPhase:
    """Return the phase of these transfers, each on its path.

    In a ring no worker is done before all are, because each sends on what it receives. Otherwise a worker leaves when
    it has received all its bytes and all that it sent have arrived.
    """
    into = {each.receiver: place for place, each in enumerate(transfers)}
    streams = tuple(
        Stream(each.sender, each.receiver, path, float(each.bytes), into[each.sender] if each.lead_bytes == 0 else None)
        for each, path in zip(transfers, paths, strict=True)
    )
    return SendPhase(streams, alone_ms, (*_ring_barriers(transfers), *_other_barriers(transfers)))


def _ring_barriers(transfers: Sequence[Transfer]) -> list[Barrier]:
    onwards = {each.sender: (place, each.receiver) for place, each in enumerate(transfers) if each.lead_bytes}
    parties = []
    while onwards:
        ring, worker = [], next(iter(onwards))
        while worker in onwards:
            place, receiver = onwards.pop(worker)
            ring.append((worker, place))
            worker = receiver
        workers, places = zip(*ring, strict=True)
        parties.append(Barrier(workers, places))
    return parties


def _other_barriers(transfers: Sequence[Transfer]) -> list[Barrier]:
    places: dict[int, list[int]] = {}
    for place, each in enumerate(transfers):
        if not each.lead_bytes:
            places.setdefault(each.sender, []).append(place)
            places.setdefault(each.receiver, []).append(place)
    return [Barrier((worker,), tuple(awaits)) for worker, awaits in places.items()]
