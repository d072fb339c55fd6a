# SPDX-License-Identifier: Apache-2.0
"""The recorded jobs of a cluster as one trial, whose delays can be attributed like those of a run's trials."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.advice.senders import JobList, read_senders
from analysis.advice.topologies import read_topology, scheduler_of
from analysis.attribution.attribution import Attribution, DelayPart, JobDelay, OpenModels, decompose_all, delay_parts
from analysis.attribution.counted_jobs import read_counted_jobs
from analysis.attribution.counterfactuals import Computing
from analysis.attribution.decomposition import MeasuredTrial, Source
from analysis.attribution.recorded_jobs import Hosts, RecordedJob, cut_to_common_time, place_ranks, read_recorded_jobs
from analysis.expectations.results import CellFigure
from analysis.statistics.intervals import MIN_REPETITIONS, Measured, mean_of
from roundabout.core.errors import UsageError
from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS
from roundabout.spec import Phase, Profile, Topology, Transport, TrialSpec
from roundabout.spec.errors import list_choices
from roundabout.spec.job import ResolvedJob

CELL = "records"
UNKNOWN_TRANSPORT = "cubic"
"""Transport of jobs whose congestion control is not given. The flow-level model shares links fairly for all."""
SEEDS = range(4)
"""Of orders of causes, and of replays with random parts: one of them would be by chance, and four have an interval."""


@dataclass(frozen=True)
class RecordSources:
    """The files that describe a cluster's jobs: their records, hosts, and network, as the command line names them.

    `alone` has records of jobs that had the network to themselves. `capacity_gbps` is the payload rate of a cable of a
    scheduler's topology. `transport` is the congestion control of all jobs, None if it is unknown.
    """

    records: Path
    topology: str
    jobs: Path | None = None
    alone: Path | None = None
    capacity_gbps: float | None = None
    transport: str | None = None


@dataclass(frozen=True)
class RecordedTrial:
    """The recorded jobs as a trial, with the iteration times of each job, ms, and notes on what is not known."""

    trial: MeasuredTrial
    times_ms: Mapping[str, Sequence[float]]
    notes: tuple[str, ...]


def read_recorded_trial(sources: RecordSources) -> RecordedTrial:
    """Return the jobs of records as one trial. Raises UsageError, RecordError and SpecError."""
    listed = read_senders(sources.jobs) if sources.jobs else JobList({})
    hosts = {host for each in listed.senders.values() for host in each}
    if scheduler_of(sources.topology) and sources.capacity_gbps is None:
        hint = "give the payload rate of a cable: a scheduler's file has no rates"
        raise UsageError(f"--topology {sources.topology}: found no --capacity, expected it", hint)
    topology, notes = read_topology(sources.topology, hosts, sources.capacity_gbps)
    jobs = _read_jobs(sources.records, listed.senders, topology)
    placed = {name: replace(each, workers=place_ranks(each, topology, listed.senders)) for name, each in jobs.items()}
    alone = _read_jobs(sources.alone, listed.senders, topology) if sources.alone else {}
    _check_alone(alone, jobs)
    cut = cut_to_common_time(placed)
    trial = _measured_trial(cut, alone, topology, sources.transport)
    times_ms = {name: each.iterations.times_ms.tolist() for name, each in cut.items()}
    if topology.routing and topology.hashes_flows:
        notes = (*notes, "records do not show the ports of flows: which of several paths they take is drawn")
    said = (*listed.notes, *notes, *_notes(cut, alone, listed, sources))
    return RecordedTrial(trial, times_ms, tuple(dict.fromkeys(said)))


def attribute_recorded_delays(  # noqa: PLR0913, PLR0917 - what is explained, by what, and how it is watched
    recorded: RecordedTrial,
    name: str,
    open_models: OpenModels,
    model: str,
    processors: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
    *,
    is_random: bool = False,
) -> Attribution:
    """Return what delays the recorded jobs, by playing them again without one cause after the other.

    `name` is that of the records. `open_models`, `model`, `processors` and `progress` are those of `attribute_delays`.
    If replays are random (`is_random`), parts are means over those with several seeds. Raises RoundaboutError if a
    model cannot play the jobs.
    """
    trials = [replace(recorded.trial, seed=seed) for seed in (SEEDS if is_random else SEEDS[:1])]
    found = decompose_all([(CELL, trial) for trial in trials], open_models, processors, progress)
    jobs = tuple(_job_delay(job, recorded, [parts[job] for parts in found]) for job in recorded.trial.mean_ms)
    return Attribution(experiment=CELL, run=name, testbed="a cluster", model=model, jobs=jobs, notes=recorded.notes)


def _read_jobs(path: Path, listed: Hosts, topology: Topology) -> dict[str, RecordedJob]:
    """Return the jobs of a folder of records, or of a file of counters."""
    if path.is_file():
        return read_counted_jobs(path, listed, max(link.payload_rate_gbps for link in topology.links))
    return read_recorded_jobs(path, listed)


def _check_alone(alone: Mapping[str, RecordedJob], jobs: Mapping[str, RecordedJob]) -> None:
    """Raise UsageError if records alone are of none of the jobs, or of one with another number of ranks."""
    if alone and not alone.keys() & jobs.keys():
        raise UsageError(
            f"found the jobs {', '.join(alone)} in --alone, expected one of {list_choices(sorted(jobs))}",
            "call its folder as that of the job in --records",
        )
    for name, job in jobs.items():
        if name in alone and len(alone[name].hosts) != len(job.hosts):
            found = f"found {len(alone[name].hosts)} ranks in --alone, expected {len(job.hosts)}, as in --records"
            raise UsageError(f"job {name}: {found}", "record it with as many workers")


def _measured_trial(
    jobs: Mapping[str, RecordedJob], alone: Mapping[str, RecordedJob], topology: Topology, transport: str | None
) -> MeasuredTrial:
    begin_ns = min(each.begin_ns for each in jobs.values())
    spec = TrialSpec.model_construct(  # names of a cluster's hosts and jobs may be longer than those of a testbed
        topology=topology,
        jobs={
            name: ResolvedJob.model_construct(
                profile=(alone.get(name) or each).profile(),
                workers=each.workers,
                transport=Transport(name=transport or UNKNOWN_TRANSPORT),
                iterations=len(each.iterations.computing_ms),
                start_offset_ms=(each.begin_ns - begin_ns) / 1e6,
                jitter=0.0,
            )
            for name, each in jobs.items()
        },
        iterations=1,
    )
    faster = {
        name: spec.jobs[name].model_copy(update={"profile": _at_link_rates(spec, name, each)})
        for name, each in jobs.items()
        if name not in alone
    }
    spec = spec.model_copy(update={"jobs": {**spec.jobs, **faster}})
    references_ms = {name: (alone.get(name) or each).computing_ms for name, each in jobs.items()}
    slowest = {name: _stretches(each.iterations.computing_ms, references_ms[name]) for name, each in jobs.items()}
    mean = {
        name: _stretches(each.iterations.computing_ms - each.iterations.waited_ms, references_ms[name])
        for name, each in jobs.items()
    }
    means_ms = {name: float(each.iterations.times_ms.mean()) for name, each in jobs.items()}
    return MeasuredTrial(spec, SEEDS[0], means_ms, Computing(slowest, mean))


def _stretches(times_ms: np.ndarray, reference_ms: float) -> tuple[float, ...]:
    return tuple((times_ms / reference_ms).tolist()) if reference_ms else (1.0,)


def _at_link_rates(spec: TrialSpec, name: str, recorded: RecordedJob) -> Profile:
    """Return the job's profile with sending phases as fast as its links alone allow."""
    phases = [phase for phase in spec.jobs[name].profile.phases if phase.bytes]
    return recorded.profile([_least_ms(spec, name, phase) for phase in phases])


def _least_ms(spec: TrialSpec, name: str, phase: Phase) -> float:
    times_ms = (
        size / (hop.link.payload_rate_gbps * BYTES_PER_MS_OF_GBPS)
        for hop, size in spec.bytes_by_hop(name, phase).items()
    )
    return max(times_ms, default=phase.duration_ms)


def _notes(
    jobs: Mapping[str, RecordedJob], alone: Mapping[str, RecordedJob], listed: JobList, sources: RecordSources
) -> Iterator[str]:
    """Yield sentences on what records do not show."""
    yield (
        "records show neither queues nor cross traffic: what these cost is unexplained"
        if sources.transport
        else "records show neither the congestion control, nor queues or cross traffic: what these cost is "
        "unexplained; with --transport, the jobs are played packet by packet"
    )
    guessed = [name for name in jobs if name not in alone]
    if guessed:
        yield (
            f"{', '.join(guessed)}: no records alone (--alone): computing is taken to be as recorded, and sending to "
            "be as fast as links allow; where a job sends more slowly by itself, that is unexplained"
        )
    unseen = [name for name in listed.senders if name not in jobs]
    if unseen:
        yield f"jobs of --jobs without records, whose effect on others is unexplained: {', '.join(unseen)}"
    for name, each in jobs.items():
        yield from (f"{name}: {note}" for note in each.notes)


def _job_delay(job: str, recorded: RecordedTrial, parts: Sequence[Mapping[Source, float]]) -> JobDelay:
    alone_ms = recorded.trial.spec.jobs[job].profile.alone_ms
    measured = _mean_of_blocks(recorded.times_ms[job])
    shown = delay_parts(parts)
    computed_ms = recorded.trial.mean_ms[job] - shown[-1].ms.value
    rest = DelayPart(cause="unexplained", ms=_less(measured, computed_ms))
    return JobDelay(
        cell=CELL,
        levels={},
        job=job,
        repetitions=1,
        disturbed=False,
        iteration_ms=measured[0],
        alone_ms=alone_ms,
        delay_ms=_less(measured, alone_ms),
        parts=(*shown[:-1], rest),
    )


def _less(measured: Measured, by_ms: float) -> CellFigure:
    value, ends = measured
    return CellFigure(value=value - by_ms, ci95=ends and (ends[0] - by_ms, ends[1] - by_ms))


def _mean_of_blocks(times_ms: Sequence[float]) -> Measured:
    """Return the mean iteration time with its interval, by the means of consecutive blocks (batch means)."""
    _, ends = mean_of([float(each.mean()) for each in np.array_split(np.array(times_ms), MIN_REPETITIONS)])
    return float(np.mean(times_ms)), ends
