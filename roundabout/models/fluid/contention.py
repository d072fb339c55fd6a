# SPDX-License-Identifier: Apache-2.0
"""Groups of jobs that can slow each other down, without the streams that nothing can slow down.

A large fabric has thousands of streams, most of which never meet more than their links carry. Streams that cross common
links, directly or by way of others, are a set. A set is contended if the demand on a link of it could exceed its
capacity. Streams of other sets are never delayed, so they cross no link here. Jobs of one contended set are a group.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from roundabout.core.disjoint_sets import DisjointSets
from roundabout.models.fluid.jobs import Barrier, FluidJob, SendPhase, Stream, merge_workers
from roundabout.spec.topology import Direction

ROUNDING = 1e-9
"""Share by which a link's demand may exceed its capacity by rounding. A larger one would hide contention."""


def contended_groups(jobs: Mapping[str, FluidJob], capacity: Mapping[Direction, float]) -> list[dict[str, FluidJob]]:
    """Return the groups of jobs that can slow each other down, each job without the links that cannot slow it down.

    The times of a job in its group are those of the job among all jobs, apart from rounding.
    """
    merged = {name: merge_workers(job) for name, job in jobs.items()}
    sets = _stream_sets(merged.values())
    contended = {sets.find(edge) for edge, rate in _demands(merged.values()).items() if _exceeds(rate, capacity[edge])}
    groups = DisjointSets()
    for name, job in merged.items():
        groups.join([name, *({sets.find(edge) for edge in job.edges} & contended)])
    found: dict[Hashable, dict[str, FluidJob]] = {}
    for name, job in merged.items():
        found.setdefault(groups.find(name), {})[name] = _without_free_links(job, sets, contended)
    return list(found.values())


def _exceeds(demand: float, capacity: float) -> bool:
    return demand > capacity * (1 + ROUNDING)


def _stream_sets(jobs: Iterable[FluidJob]) -> DisjointSets:
    """Return the sets of links that common streams cross; a stream that passes on data belongs to its feeder."""
    sets = DisjointSets()
    for job in jobs:
        for phase in _sends(job):
            for stream in phase.streams:
                feeder = () if stream.passes_on is None else phase.streams[stream.passes_on].path
                if stream.path or feeder:
                    sets.join((*stream.path, *feeder))
    return sets


def _demands(jobs: Iterable[FluidJob]) -> dict[Direction, float]:
    """Return an upper bound of the rate that undelayed streams demand from each link, bytes/ms.

    All workers of a job with one worker are in one phase at a time; those of other jobs may be in several.
    """
    total: dict[Direction, float] = {}
    for job in jobs:
        of_phases = [_phase_demands(phase) for phase in _sends(job)]
        combine = max if job.workers == 1 else sum
        for edge in job.edges:
            total[edge] = total.get(edge, 0.0) + combine(each.get(edge, 0.0) for each in of_phases)
    return total


def _phase_demands(phase: SendPhase) -> dict[Direction, float]:
    paces: list[float] = []
    demands: dict[Direction, float] = {}
    for stream in phase.streams:
        own = stream.size / phase.alone_ms
        paces.append(own if stream.passes_on is None else max(own, paces[stream.passes_on]))
        for edge, share in stream.links:
            demands[edge] = demands.get(edge, 0.0) + share * paces[-1]
    return demands


def _sends(job: FluidJob) -> list[SendPhase]:
    return [phase for phase in job.phases if isinstance(phase, SendPhase)]


def _without_free_links(job: FluidJob, sets: DisjointSets, contended: set[Hashable]) -> FluidJob:
    def freed(stream: Stream) -> Stream:
        is_free = not stream.path or sets.find(stream.path[0]) not in contended
        return replace(stream, path=(), shares=()) if is_free else stream

    phases = tuple(
        replace(phase, streams=tuple(map(freed, phase.streams))) if isinstance(phase, SendPhase) else phase
        for phase in job.phases
    )
    if job.workers == 1:
        phases = tuple(_with_one_free_stream(each) if isinstance(each, SendPhase) else each for each in phases)
    return replace(job, phases=phases)


def _with_one_free_stream(phase: SendPhase) -> SendPhase:
    """Return a phase of a job with one worker, in which one stream stands for all that cross no link."""
    free = [stream for stream in phase.streams if not stream.path]
    if len(free) < 2 or any(stream.passes_on is not None for stream in phase.streams):
        return phase
    streams: Sequence[Stream] = (free[0], *(stream for stream in phase.streams if stream.path))
    return SendPhase(tuple(streams), phase.alone_ms, (Barrier((0,), tuple(range(len(streams)))),))
