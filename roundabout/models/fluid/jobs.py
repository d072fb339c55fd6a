# SPDX-License-Identifier: Apache-2.0
"""Jobs in the flow-level model: phases of streams between workers, each stream on its path through the tree."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat

from roundabout.core.disjoint_sets import DisjointSets
from roundabout.models.fluid.mltcp import Factor, factor_of
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import Timetable
from roundabout.spec.job import ResolvedJob
from roundabout.spec.patterns import Transfer, find_feeders, flow_bytes
from roundabout.spec.topology import Direction, Hop, Topology

Path = tuple[Direction, ...]

EQUAL_MS = 1e-9
"""Largest difference of two instants that count as one, ms."""


@dataclass(frozen=True)
class ComputePhase:
    """A phase without traffic."""

    ms: float


@dataclass(frozen=True)
class Stream:
    """The bytes that one worker sends another in a phase.

    Its `size` bytes appear at a constant rate over the phase's `alone_ms`.

    With `passes_on`, the index of an earlier stream of the phase, they appear as the bytes of that stream arrive. Each
    link of the path carries all bytes, or with `shares` that share of them.
    """

    sender: int
    receiver: int
    path: Path
    size: float
    passes_on: int | None = None
    shares: tuple[float, ...] = ()

    @property
    def links(self) -> Iterable[tuple[Direction, float]]:
        """Return the links of the path, each with the share of the stream's bytes that it carries."""
        return zip(self.path, self.shares or repeat(1.0))  # noqa: B905 - `repeat` has no end


@dataclass(frozen=True)
class Barrier:
    """Workers that leave a phase together, and the indices of the streams that must have ended before."""

    workers: tuple[int, ...]
    awaits: tuple[int, ...]


@dataclass(frozen=True)
class SendPhase:
    """A phase of streams. Workers that are in no barrier skip the phase."""

    streams: tuple[Stream, ...]
    alone_ms: float
    barriers: tuple[Barrier, ...]

    def is_left_together(self, workers: int) -> bool:
        """Return True if all of a job's workers leave the phase at one instant."""
        return len(self.barriers) == 1 and len(self.barriers[0].workers) == workers


@dataclass(frozen=True)
class FluidJob:
    """A job: its workers, the phases of an iteration, its streams' weight and priority, and its begin.

    The job runs forever, unless it ends after `iterations` or departs at `departs_ms`. A `factor` multiplies the weight
    as a function of the share of the iteration's bytes that all workers together have sent. A `timetable` delays
    iterations, and the delay counts as a part of them. Computing times of iteration i are multiplied by `stretches[i]`,
    cyclically.
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
        """Return every direction of a link that the job's streams cross."""
        return frozenset(edge for stream in self.streams for edge in stream.path)

    @cached_property
    def alone_ms(self) -> float:
        """Return the time of an iteration in which nothing delays the job, ms."""
        return sum(phase.ms if isinstance(phase, ComputePhase) else phase.alone_ms for phase in self.phases)

    @cached_property
    def iteration_bytes(self) -> float:
        """Return the bytes of all of the job's streams in an iteration."""
        return sum(stream.size for stream in self.streams)


def merge_workers(job: FluidJob) -> FluidJob:
    """Return the job with one worker in place of all if all workers leave each phase together, else the job itself.

    The merged job gives the same times and is computed faster.
    """
    sends = [phase for phase in job.phases if isinstance(phase, SendPhase)]
    if not all(phase.is_left_together(job.workers) for phase in sends):
        return job
    phases = tuple(_merge_phase(phase) if isinstance(phase, SendPhase) else phase for phase in job.phases)
    return replace(job, workers=1, phases=phases)


def _merge_phase(phase: SendPhase) -> SendPhase:
    streams = tuple(replace(stream, sender=0, receiver=0) for stream in phase.streams)
    return SendPhase(streams, phase.alone_ms, (Barrier((0,), phase.barriers[0].awaits),))


def fluid_jobs(spec: TrialSpec) -> dict[str, FluidJob]:
    """Return the jobs of a trial by name, with their begins, iterations, departures and priorities."""
    return {
        name: fluid_job(
            name, job, spec.topology, spec.iterations_of(name), spec.queue_of_priority.get(job.priority or 0, 0)
        )
        for name, job in spec.jobs.items()
    }


def fluid_job(name: str, job: ResolvedJob, topology: Topology, iterations: int, priority: int = 0) -> FluidJob:
    """Return a job of a trial on the topology's paths; `priority` is the index of its queue.

    A stream stands for all flows of a transfer, or for one of them where flows take paths of their own.
    """
    phases: list[ComputePhase | SendPhase] = []
    for phase in job.profile.phases:
        if phase.compute_ms is not None:
            phases.append(ComputePhase(phase.compute_ms))
            continue
        assert phase.alone_ms is not None
        transfers = job.transfers(phase)
        flows = [job.flows_of(name, each, topology) for each in transfers]
        shares = [[topology.link_shares(flow) for flow in each] for each in flows]
        paths = [[topology.directions(tuple(shared)) for shared in each] for each in shares]
        send_phase = _make_phase(transfers, paths, phase.alone_ms)
        phases.append(_spread(send_phase, shares) if topology.spreads_packets else send_phase)
    return FluidJob(
        phases=tuple(phases),
        workers=len(job.workers),
        weight=1.0 if topology.hashes_flows else float(job.flows),
        priority=priority,
        start_ms=job.begins_ms,
        iterations=iterations,
        departs_ms=job.departs_ms,
        factor=factor_of(job.transport),
        timetable=job.held_timetable,
    )


def _spread(phase: SendPhase, shares: Sequence[Sequence[Mapping[Hop, float]]]) -> SendPhase:
    """Return the phase with the shares of its streams' links, of each flow of each transfer."""
    of_streams = [tuple(shared.values()) for each in shares for shared in each]
    streams = (replace(stream, shares=own) for stream, own in zip(phase.streams, of_streams, strict=True))
    return replace(phase, streams=tuple(streams))


def make_send_phase(transfers: Sequence[Transfer], paths: Sequence[Path], alone_ms: float) -> SendPhase:
    """Return the phase of these transfers; `paths` has the path of each, and `alone_ms` is the phase's time alone.

    The workers of an all-reduce leave the phase together, because each sends on what it receives. Other workers leave
    when they have received all their bytes, and all bytes that they sent have arrived.
    """
    return _make_phase(transfers, [(path,) for path in paths], alone_ms)


def _make_phase(transfers: Sequence[Transfer], paths: Sequence[Sequence[Path]], alone_ms: float) -> SendPhase:
    """Return the phase of transfers that are spread over flows, as many for each; `paths` has the path of each flow.

    A flow of a pipeline passes on what the flow of the same number has brought. Those of an all-reduce do not wait for
    each other: the slowest one decides when all workers leave.
    """
    flows = len(paths[0]) if paths else 1
    streams = tuple(
        Stream(
            each.sender,
            each.receiver,
            path,
            float(flow_bytes(each.bytes, flows, number)),
            fed[0] * flows + number if fed and not each.all_reduce else None,
        )
        for each, fed, own in zip(transfers, find_feeders(transfers), paths, strict=True)
        for number, path in enumerate(own)
    )
    barriers = (*_all_reduce_barriers(transfers), *_other_barriers(transfers))
    return SendPhase(
        streams, alone_ms, barriers if flows == 1 else tuple(_await_flows(each, flows) for each in barriers)
    )


def _await_flows(barrier: Barrier, flows: int) -> Barrier:
    """Return a barrier of transfers as one of their streams."""
    return replace(barrier, awaits=tuple(place * flows + number for place in barrier.awaits for number in range(flows)))


def _all_reduce_barriers(transfers: Sequence[Transfer]) -> list[Barrier]:
    groups, places = DisjointSets(), dict[Hashable, list[int]]()
    for each in transfers:
        if each.all_reduce:
            groups.join((each.sender, each.receiver))
    for place, each in enumerate(transfers):
        if each.all_reduce:
            places.setdefault(groups.find(each.sender), []).append(place)
    senders = {group: dict.fromkeys(transfers[place].sender for place in own) for group, own in places.items()}
    return [Barrier(tuple(senders[group]), tuple(own)) for group, own in places.items()]


def _other_barriers(transfers: Sequence[Transfer]) -> list[Barrier]:
    places: dict[int, list[int]] = {}
    for place, each in enumerate(transfers):
        if not each.all_reduce:
            places.setdefault(each.sender, []).append(place)
            places.setdefault(each.receiver, []).append(place)
    return [Barrier((worker,), tuple(awaits)) for worker, awaits in places.items()]
