# SPDX-License-Identifier: Apache-2.0
"""Jobs as observed in byte counters: each job's period, phases and jitter, or the reason why it gets no advice."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.advice import senders, sources
from analysis.advice.counters import HostCounter
from analysis.advice.errors import AdviceError
from analysis.advice.senders import JobList, Senders
from analysis.reading.measured_profile import find_lone_job
from analysis.statistics.cumulative_counter import Floats
from analysis.statistics.iteration_period import MIN_SAMPLES, QUIET_SHARE, NoPeriodError
from analysis.statistics.phase_folding import MIN_ITERATIONS, FoldedIterations, WorkerCounter, fold_iterations
from analysis.statistics.phases import SAME_RATE, FoundProfile, find_phases_in
from roundabout.models.cassini import Arc, Circle
from roundabout.spec import TrialSpec
from roundabout.spec.errors import list_choices
from roundabout.store import Run, StoreError

UNSTABLE = 0.02
"""Largest difference between the periods of both halves, and largest width of the period's interval, as shares of it.
"""
SILENT = 0.1
"""A job has ended if it sent nothing in this last share of the time."""
NEAR = 0.05
"""Jobs saturate a link together if their rates, while all send, add up to the capacity within this share of it."""
TOGETHER = 0.1
"""Least share of a job's sending time in which exactly a group of jobs sends, for the group to be examined."""
UNKNOWN_RATE = 1.0
"""Largest error of a sending phase's rate, as a share of it: beyond, an interval would reach 0 or twice the rate."""
PLAUSIBLE_MS = 400.0
"""Iterations that may be longer than this are common; a guess. It only decides where a note is written."""
MAX_TOGETHER = 4
"""Largest number of jobs on one link."""

Report = Callable[[str], None]
"""Shows the step that begins."""


def ignore_progress(_: str) -> None:
    """Leave out the progress of long work."""


@dataclass(frozen=True)
class ObservedJob:
    """An observed job: its found profile, and the standard deviation of its iterations' lengths.

    Without `found`, `reason` says why there is no advice. `notes` name what qualifies the findings. `samples` is the
    number of a host's samples in a period.
    """

    job: str
    found: FoundProfile | None = None
    jitter_ms: float = 0.0
    reason: str = ""
    notes: tuple[str, ...] = ()
    samples: float = 0.0

    @property
    def circle(self) -> Circle:
        """Return the job's sending phases as arcs of its circle."""
        found = self.found
        assert found is not None
        period_ms = found.period_ms.value
        begins = [phase.begin_ms.value for phase in found.phases]
        ends = [
            min(begin + phase.duration_ms.value, period_ms) for begin, phase in zip(begins, found.phases, strict=True)
        ]
        arcs = (
            Arc(min(begin, end), end, phase.gbps.value)
            for begin, end, phase in zip(begins, ends, found.phases, strict=True)
            if phase.sends
        )
        return Circle(self.job, period_ms, tuple(arcs))


def observe_run(run: Run) -> tuple[list[ObservedJob], float]:
    """Return each job of a run with its findings, and the bottleneck's payload rate, Gbit/s.

    A job is observed in the last valid trial in which it was alone. Raises StoreError if the run has no trial.
    """
    specs = [TrialSpec.model_validate(trial["spec"]) for trial in run.trials()]
    if not specs:
        raise StoreError(f"{run.path}: found no trial, expected those of each job alone", "run it")
    profiles: dict[str, set[str]] = {}
    for spec in specs:
        for name, job in spec.jobs.items():
            profiles.setdefault(name, set()).add(job.profile.model_dump_json())
    jobs = [
        _observe_trial(run, name) if len(known) == 1 else _observe_profiles(name, len(known))
        for name, known in profiles.items()
    ]
    return jobs, specs[-1].topology.bottleneck.payload_rate_gbps


def _observe_profiles(job: str, profiles: int) -> ObservedJob:
    return ObservedJob(job, reason=f"found {profiles} jobs of this name with unlike profiles, expected one")


def _observe_trial(run: Run, job: str) -> ObservedJob:
    try:
        lone = find_lone_job(run, job)
        return observe_job(job, lone.workers(), hosts=lone.job.workers)
    except StoreError as error:
        return ObservedJob(job, reason=error.message.removeprefix(f"{run.path}: "))


def observe_counters(
    hosts: Mapping[str, HostCounter], sending: Senders, capacity_gbps: float, report: Report = ignore_progress
) -> list[ObservedJob]:
    """Return each job's findings from its hosts' counters; `report` is called with each step.

    Jobs that share a host, or fill a link together, get a reason instead.
    """
    reasons = senders.shared_hosts(sending)
    sent: dict[str, list[WorkerCounter]] = {}
    for job, names in sending.items():
        try:
            sent[job] = [_counter_of_host(hosts, name, capacity_gbps) for name in names]
        except AdviceError as error:
            reasons.setdefault(job, error.message)
    apart = {job: workers for job, workers in sent.items() if job not in reasons}
    reasons |= _saturation_reasons(apart, capacity_gbps)
    last_ns = max((counter.at_ns[-1] for counter in hosts.values() if len(counter.at_ns)), default=0)
    observed = []
    for job, names in sending.items():
        report(f"finding the period of {job}")
        unknown = ObservedJob(job, reason=reasons.get(job, ""))
        observed.append(unknown if unknown.reason else observe_job(job, apart[job], int(last_ns), names))
    return observed


def _counter_of_host(hosts: Mapping[str, HostCounter], name: str, capacity_gbps: float) -> WorkerCounter:
    if name not in hosts:
        raise AdviceError(f"found no counter of host {name}, expected one of {list_choices(sorted(hosts))}")
    try:
        return hosts[name].to_sent_bytes(capacity_gbps)
    except AdviceError as error:
        raise AdviceError(f"host {name}: {error.message}") from error


def observe_job(
    job: str, workers: Sequence[WorkerCounter], last_ns: int | None = None, hosts: Sequence[str] = ()
) -> ObservedJob:
    """Return a job's findings from its workers' counters, or the reason why there are none.

    A reason is, for example, that the job ended long before `last_ns`. Notes name workers by their `hosts`.
    """
    notes: tuple[str, ...] = ()
    try:
        folded = fold_iterations(workers)
        notes = (*_offset_notes(job, folded, hosts), *_resolution_notes(job, folded))
        reason = _end_reason(workers, last_ns, folded.period_ms) or _instability_reason(folded)
        found = None if reason else find_phases_in(folded)
    except NoPeriodError as error:
        return ObservedJob(job, reason=error.message, notes=notes)
    reason = reason or (_uncertainty_reason(found, workers) if found else "")
    jitter_ms = float(folded.lengths_ms.std())
    return ObservedJob(job, None if reason else found, jitter_ms, reason, notes, folded.samples_per_iteration)


def _offset_notes(job: str, folded: FoldedIterations, hosts: Sequence[str]) -> Iterator[str]:
    """Yield the hosts that send at other times than the job's first host."""
    names = hosts or [f"worker {place}" for place in range(len(folded.offsets_ms))]
    for host, offset_ms in zip(names, folded.offsets_ms, strict=True):
        if offset_ms:
            order = "after" if offset_ms > 0 else "before"
            apart = f"{host} sends {abs(offset_ms):.0f} ms {order} {names[0]}, give or take whole periods"
            yield f"{job}: {apart}: are their clocks synchronized? Its figures are of samples shifted by that"


def _resolution_notes(job: str, folded: FoldedIterations) -> Iterator[str]:
    """Yield a note if samples are so far apart that shorter iterations are as plausible as the found ones."""
    step_ms = folded.period_ms / folded.samples_per_iteration
    if MIN_SAMPLES * step_ms > PLAUSIBLE_MS:
        shorter = f"iterations shorter than {MIN_SAMPLES * step_ms:.0f} ms would show as longer ones"
        yield f"{job}: samples are {step_ms:.0f} ms apart: {shorter}"


def _uncertainty_reason(found: FoundProfile, workers: Sequence[WorkerCounter]) -> str:
    """Return the reason if the period or the rate of a phase is not known well enough."""
    period = found.period_ms
    if period.high - period.low > UNSTABLE * period.value:
        known = f"{period.low:.1f} to {period.high:.1f} ms"
        return f"its period is known as {known} only, expected {100 * UNSTABLE:.0f} % at most"
    fastest_gbps = max(map(_fastest_gbps, workers))
    step_ms = max(float(np.median(np.diff(each.at_ns))) for each in workers) / 1e6
    for phase in found.phases:
        rate, begin_ms = phase.gbps, phase.begin_ms.value
        where = f"the rate from {begin_ms:.0f} to {begin_ms + phase.duration_ms.value:.0f} ms"
        if phase.sends and max(rate.high - rate.value, rate.value - rate.low) > UNKNOWN_RATE * rate.value:
            return f"{where} is not known: {rate.low:.3g} to {rate.high:.3g} Gbit/s fit the samples"
        # A phase of two samples' length or more has a whole interval between samples in it.
        if phase.duration_ms.value > 2 * step_ms and rate.value > fastest_gbps * (1 + SAME_RATE):
            fastest = f"no host sent more than {fastest_gbps:.1f} between two samples"
            return f"{where} would be {rate.value:.1f} Gbit/s, but {fastest}"
    return ""


def _fastest_gbps(worker: WorkerCounter) -> float:
    """Return the largest rate between two samples of different instants."""
    steps_ns = np.diff(worker.at_ns)
    return float((np.diff(worker.payload_bytes)[steps_ns > 0] / steps_ns[steps_ns > 0]).max()) * 8


def _end_reason(workers: Sequence[WorkerCounter], last_ns: int | None, period_ms: float) -> str:
    if last_ns is None:
        return ""
    first_ns = min(worker.at_ns[0] for worker in workers)
    sent_ns = max(worker.at_ns[np.searchsorted(worker.payload_bytes, worker.payload_bytes[-1])] for worker in workers)
    silent_ms = (last_ns - sent_ns) / 1e6
    if silent_ms > max(SILENT * (last_ns - first_ns) / 1e6, MIN_ITERATIONS * period_ms):
        return f"it has ended: nothing was sent in the last {silent_ms / 1e3:.1f} s"
    return ""


def _instability_reason(folded: FoldedIterations) -> str:
    """Return the reason if its period differs between the first and the second half."""
    early = folded.length_of <= np.median(folded.length_of)
    halves = [float(np.median(folded.lengths_ms[half])) for half in (early, ~early) if half.any()]
    if max(halves) - min(halves) > UNSTABLE * folded.period_ms:
        return f"its period is unstable: {halves[0]:.1f} ms in the first half, then {halves[-1]:.1f} ms"
    return ""


def _saturation_reasons(sent: Mapping[str, Sequence[WorkerCounter]], capacity_gbps: float) -> dict[str, str]:
    """Return the jobs that saturate a link together with others, which hides their demand, with the reason.

    That is so if some jobs' rates add up to the capacity, for as long as all of them send, and never to more.
    """
    rates = _rates_gbps(sent)
    sends = {job: rate > QUIET_SHARE * np.percentile(rate, 99) for job, rate in rates.items()}
    reasons: dict[str, str] = {}
    for count in range(2, min(MAX_TOGETHER, len(rates)) + 1):
        for group in itertools.combinations(rates, count):
            others = [sends[job] for job in rates if job not in group]
            only = np.logical_and.reduce([sends[job] for job in group]) & ~np.logical_or.reduce(
                [*others, np.zeros_like(sends[group[0]])]
            )
            if only.sum() <= TOGETHER * min(sends[job].sum() for job in group):
                continue
            part = np.sum([rates[job] for job in group], axis=0)[only] / capacity_gbps
            if np.median(np.abs(part - 1)) < NEAR and np.percentile(part, 99) < 1 + NEAR:
                for job in group:
                    beside = ", ".join(other for other in group if other != job)
                    reasons.setdefault(job, f"cannot be separated from {beside}: they fill a link together")
    return reasons


def _rates_gbps(sent: Mapping[str, Sequence[WorkerCounter]]) -> dict[str, Floats]:
    """Return a worker's mean rate over time, of each job at the same instants, as far apart as samples are."""
    workers = [worker for each in sent.values() for worker in each if len(worker.at_ns) > 1]
    if len(sent) < 2 or not workers:
        return {}
    begin, end = max(each.at_ns[0] for each in workers), min(each.at_ns[-1] for each in workers)
    step = max(float(np.median(np.diff(each.at_ns))) for each in workers)
    at = np.arange(begin, end, step)
    if len(at) < 2:
        return {}
    return {
        job: np.mean([np.diff(np.interp(at, each.at_ns, each.payload_bytes)) for each in sent[job]], axis=0) * 8 / step
        for job in sent
    }


def read_jobs(
    source: str, listed: JobList, capacity_gbps: float, report: Report = ignore_progress
) -> tuple[list[ObservedJob], tuple[str, ...]]:
    """Return each job's findings from a table of counters or a Prometheus server, and notes on what was read.

    Raises AdviceError or SpecError.
    """
    named = {host for hosts in listed.senders.values() for host in hosts}
    report(f"reading {source}")
    counters = sources.read(source, named)
    return observe_counters(counters.hosts, listed.senders, capacity_gbps, report), (*counters.notes, *listed.notes)
