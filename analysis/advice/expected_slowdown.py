# SPDX-License-Identifier: Apache-2.0
"""The expected cost of sharing links and gain of time-shifts, by the flow-level model.

Jobs are played as they were found, with their jitter, from a common start and, beside it, shifted and held to a common
schedule. Each draw takes other figures from within their intervals and other jitter: if the next run is like a draw, it
lies between the least and the greatest of 39 with a probability of 38 in 40. The error of the flow-level model is added
(`FLOW_LEVEL_ERROR`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.advice.observed_jobs import ObservedJob
from analysis.statistics.cumulative_counter import Floats
from analysis.statistics.phases import DETAIL, Estimate, FoundPhase
from roundabout.models.cassini import ScoredCandidate, joint_timetables
from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS, ITERATIONS, Direction, FluidJob, iteration_times
from roundabout.models.fluid.jobs import Barrier, ComputePhase, SendPhase, Stream
from roundabout.spec.cassini import Timetable

DRAWS = 39
TRIED = 4
"""Number of draws by which a schedule is chosen; the chosen schedule's outlook uses other draws."""
HARDER, MIN_JITTER = 3.0, 0.01
"""Jitter with which schedules are compared: this multiple of the observed one, or at least this share of the period."""
PERIOD_FACTORS = (1.0, 1.005, 1.01, 1.02, 1.04, 1.08)
"""Factors by which a schedule's periods are stretched; all are tried. A longer period lets a late job catch up."""
EARLY = 1e-6
"""Threshold of schedules as a share of the period, so small that no job begins early."""
MIN_MS = 1e-3
"""Least duration of a drawn phase, ms."""
FLOW_LEVEL_ERROR = 1.10
"""Factor by which costs and gains may exceed the flow-level model's greatest draw. In the lab ten groups over DCQCN
took 0.97 to 1.10 times the model's time (docs/results/advice.md); for other transports it is a guess.
"""
SIGMAS = 3.92
"""Width of a 95 % interval in standard deviations."""

Crossing = Mapping[str, Sequence[str]]
Schedule = Mapping[str, Timetable]
"""Timetables of the jobs that share links, by name."""


@dataclass(frozen=True)
class Outlook:
    """Expected ratios of mean iteration times by job, over `ITERATIONS` iterations.

    `gain` is shared from a common start over shifted, `cost` shared over alone, `cost_shifted` shifted over alone.
    `cost_mean` and `gain_mean` are means over jobs. `gain_anywhere` is `gain_mean` over random starts instead of a
    common one. Without a schedule, no job is shifted and there is no gain.
    """

    schedule: Schedule | None
    cost: Mapping[str, Estimate]
    cost_mean: Estimate
    cost_shifted: Mapping[str, Estimate]
    gain: Mapping[str, Estimate]
    gain_mean: Estimate | None
    gain_anywhere: Estimate | None


def compute_outlook(
    jobs: Mapping[str, ObservedJob],
    crossing: Crossing,
    capacity_gbps: float,
    choices: Sequence[ScoredCandidate] = (),
    seed: int = 0,
) -> Outlook:
    """Return the outlook of jobs that cross links of `capacity_gbps`, shifted by the best of Cassini's `choices`."""
    names = list(dict.fromkeys(job for members in crossing.values() for job in members))
    rates: dict[Direction, float] = {(link, ""): capacity_gbps * BYTES_PER_MS_OF_GBPS for link in crossing}
    generator = np.random.default_rng(seed)

    def drawn(of: Mapping[str, ObservedJob]) -> list[FluidJob]:
        return [_draw_job(of[name], crossing, generator) for name in names]

    harder = {name: _with_more_jitter(jobs[name]) for name in names}
    schedules = [schedule_of(jobs, each) for each in choices]
    tried = [drawn(harder) for _ in range(TRIED)]
    schedule = _best_schedule(schedules, tried, names, rates)
    schedule = _best_schedule(
        [_stretch_schedule(schedule, by) for by in PERIOD_FACTORS] if schedule else (), tried, names, rates
    )
    draws = [drawn(jobs) for _ in range(DRAWS)]
    alone = np.array([[mean_ms([job], rates)[0] for job in played] for played in draws])
    fair = np.array([mean_ms(played, rates) for played in draws])
    cost = fair / alone
    of_meeting = by_job(names, cost, FLOW_LEVEL_ERROR), estimate(cost.mean(axis=1), FLOW_LEVEL_ERROR)
    if schedule is None:
        return Outlook(None, *of_meeting, {}, {}, None, None)
    again = [
        [_with_other_jitter(jobs[name], job, generator) for name, job in zip(names, played, strict=True)]
        for played in draws
    ]
    shifted = np.array([mean_ms(apply_schedule(schedule, names, played), rates) for played in again])
    anywhere = np.array([mean_ms([_with_other_start(job, generator) for job in played], rates) for played in again])
    gain, by_chance = fair / shifted, (anywhere / shifted).mean(axis=1)
    return Outlook(
        schedule,
        *of_meeting,
        by_job(names, shifted / alone),
        by_job(names, gain, FLOW_LEVEL_ERROR),
        estimate(gain.mean(axis=1), FLOW_LEVEL_ERROR),
        replace(estimate(by_chance, FLOW_LEVEL_ERROR), value=float(by_chance.mean())),
    )


def _with_other_jitter(job: ObservedJob, played: FluidJob, generator: np.random.Generator) -> FluidJob:
    """Return the job with other jitter."""
    return replace(played, stretches=_stretches(job, generator))


def _with_other_start(job: FluidJob, generator: np.random.Generator) -> FluidJob:
    """Return the job, begun at a random instant of its iteration."""
    whole_ms = sum(phase.ms if isinstance(phase, ComputePhase) else phase.alone_ms for phase in job.phases)
    return replace(job, start_ms=float(generator.uniform(0, whole_ms)))


def _best_schedule(
    schedules: Sequence[Schedule],
    drawn: Sequence[list[FluidJob]],
    names: Sequence[str],
    rates: Mapping[Direction, float],
) -> Schedule | None:
    """Return the schedule with the least time of jobs, all counted alike; the first of equals, None of none.

    Rotations that are equally good for exact phases differ for late ones: if phases follow each other without a gap,
    one overlap delays both, and they go on overlapping.
    """
    if len(set(map(str, schedules))) < 2:
        return next(iter(schedules), None)
    base = np.array([mean_ms(jobs, rates) for jobs in drawn])
    times = [np.array([mean_ms(apply_schedule(each, names, jobs), rates) for jobs in drawn]) for each in schedules]
    return schedules[int(np.argmin([(own / base).mean() for own in times]))]


def _with_more_jitter(job: ObservedJob) -> ObservedJob:
    """Return the job with more jitter than it has."""
    assert job.found is not None
    return replace(job, jitter_ms=max(HARDER * job.jitter_ms, MIN_JITTER * job.found.period_ms.value))


def schedule_of(jobs: Mapping[str, ObservedJob], scored: ScoredCandidate) -> Schedule:
    """Return timetables with Cassini's time-shifts, and with periods that each job can keep: no iteration is squeezed.

    A period is at least the job's own plus one standard deviation, because otherwise a late job would never catch up.
    """
    return joint_timetables(scored.links, EARLY, {name: job.jitter_ms for name, job in jobs.items()})


def _stretch_schedule(schedule: Schedule, by: float) -> Schedule:
    return {name: timetable.stretch(by) for name, timetable in schedule.items()}


def apply_schedule(schedule: Schedule, names: Sequence[str], jobs: Sequence[FluidJob]) -> list[FluidJob]:
    """Return the jobs, called `names`, with the schedule's shifts and timetables; jobs outside it are unchanged."""
    return [
        replace(job, start_ms=schedule[name].shift_ms, timetable=schedule[name]) if name in schedule else job
        for name, job in zip(names, jobs, strict=True)
    ]


def mean_ms(jobs: Sequence[FluidJob], rates: Mapping[Direction, float]) -> list[float]:
    """Return each job's mean iteration time, ms, while all jobs run for at least `ITERATIONS`."""
    return [float(np.mean(times)) for times in iteration_times(jobs, rates, ITERATIONS)]


def fluid_job(
    phases: Sequence[tuple[float, float | None]],
    paths: Sequence[Sequence[Direction]],
    stretches: Sequence[float] = (1.0,),
) -> FluidJob:
    """Return a job of a stream on each path; a phase is its length in ms and each stream's bytes, None to compute."""
    parts: list[ComputePhase | SendPhase] = []
    for ms, size in phases:
        streams = tuple(Stream(0, 0, tuple(path), size or 0.0) for path in paths)
        barrier = Barrier((0,), tuple(range(len(streams))))
        parts.append(ComputePhase(ms) if size is None else SendPhase(streams, ms, (barrier,)))
    return FluidJob(tuple(parts), 1, stretches=tuple(stretches))


@dataclass(frozen=True)
class DrawnPhases:
    """A job's phases, each with its length in ms and its bytes (None while computing), and its jitter."""

    phases: tuple[tuple[float, float | None], ...]
    stretches: tuple[float, ...]


def _draw_job(job: ObservedJob, crossing: Crossing, generator: np.random.Generator) -> FluidJob:
    """Return the job with figures from within their intervals, on the links that it crosses."""
    drawn = draw_phases(job, generator)
    path = [(link, "") for link, members in crossing.items() if job.job in members]
    return fluid_job(drawn.phases, [path], drawn.stretches)


def draw_phases(job: ObservedJob, generator: np.random.Generator) -> DrawnPhases:
    """Return phases with figures from within their intervals; the longest quiet phase takes the remaining time."""
    assert job.found is not None
    phases = job.found.phases
    ms = [max(_normal(phase.duration_ms, generator), MIN_MS) for phase in phases]
    rest = phases.index(max(phases, key=lambda phase: (not phase.sends, phase.duration_ms.value)))
    ms[rest] = max(_normal(job.found.period_ms, generator) - sum(ms) + ms[rest], MIN_MS)
    parts = tuple((each, _draw_size(phase, generator)) for each, phase in zip(ms, phases, strict=True))
    return DrawnPhases(parts, _stretches(job, generator))


def _draw_size(phase: FoundPhase, generator: np.random.Generator) -> float | None:
    return max(_normal(phase.bytes, generator), 1.0) if phase.sends else None


def _stretches(job: ObservedJob, generator: np.random.Generator) -> tuple[float, ...]:
    """Return the factors of each iteration's computing times, which are the jitter; equal within an iteration."""
    assert job.found is not None
    compute_ms = sum(phase.duration_ms.value for phase in job.found.phases if not phase.sends)
    share = job.jitter_ms / max(compute_ms, job.jitter_ms, MIN_MS)
    return tuple(np.maximum(1 + share * generator.normal(size=4 * ITERATIONS), 0).tolist())


def _normal(estimate: Estimate, generator: np.random.Generator) -> float:
    return float(generator.normal(estimate.value, (estimate.high - estimate.low) / SIGMAS))


def by_job(names: Sequence[str], drawn: Floats, beyond: float = 1.0) -> dict[str, Estimate]:
    """Return the estimate of each job, of draws (draws, jobs)."""
    return {name: estimate(drawn[:, place], beyond) for place, name in enumerate(names)}


def estimate(values: Floats, beyond: float = 1.0) -> Estimate:
    """Return the median over draws, the least, and `beyond` times the greatest."""
    return Estimate(float(np.median(values)), float(values.min()) - DETAIL, beyond * float(values.max()) + DETAIL)
