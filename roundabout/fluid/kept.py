# SPDX-License-Identifier: Apache-2.0
"""Whether jobs can keep to timetables, who can wait and not hurry, and how far these must be stretched for it.

Jobs that are not fully compatible take longer together than alone. Told to begin as often as alone, each would be later
and later, and in the end miss a turn.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from roundabout.fluid.cross_traffic import left_by_cross_traffic
from roundabout.fluid.jobs import FluidJob, fluid_jobs
from roundabout.fluid.left import Left
from roundabout.fluid.limits import steady_means_ms
from roundabout.fluid.model import ITERATIONS, Course
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import Timetable

LASTS = 4 * ITERATIONS
"""For how many iterations of the slowest job they must be kept: what drifts takes time to show."""

STEP = 1.005
"""By which timetables are stretched until they are kept."""

SLACK = 1.002
"""By how much they are stretched in any case: who is late by chance catches up. Jitter and clocks ask for it."""


def kept(spec: TrialSpec, timetables: Mapping[str, Timetable]) -> dict[str, Timetable]:
    """The timetables of the jobs of `spec`, all stretched alike: as little as no one is late.

    None where that is slower for some job than if all began at the same instants and nobody held them to anything.
    """
    stretch, most = SLACK, SLACK * STEP * _unheld(spec, timetables)
    while stretch <= most:
        stretched = {name: each.stretched(stretch) for name, each in timetables.items()}
        if _keeps(spec, stretched):
            return stretched
        stretch *= STEP
    return {}


def _unheld(spec: TrialSpec, timetables: Mapping[str, Timetable]) -> float:
    """How many of its periods an iteration takes of the job that is slowed down least, where none is held."""
    jobs = [replace(job, timetable=None) for job in _jobs(spec, timetables).values()]
    means_ms = dict(zip(spec.jobs, steady_means_ms(jobs, left_by_cross_traffic(spec), ITERATIONS), strict=True))
    return min((means_ms[name] / each.period_ms for name, each in timetables.items()), default=1.0)


def _jobs(spec: TrialSpec, timetables: Mapping[str, Timetable]) -> dict[str, FluidJob]:
    """The jobs of `spec` by these timetables, which last as long as `LASTS` iterations of the slowest."""
    lasts_ms = LASTS * max((each.period_ms for each in timetables.values()), default=0.0)
    jobs = {}
    for name, job in fluid_jobs(spec).items():
        timetable, period_ms, begins_ms = timetables.get(name), spec.jobs[name].profile.alone_ms, job.start_ms
        if timetable:
            period_ms, begins_ms = timetable.period_ms, begins_ms + timetable.early_ms(begins_ms)
        iterations = max(math.ceil(lasts_ms / period_ms), 1)
        jobs[name] = replace(job, timetable=timetable, start_ms=begins_ms, iterations=iterations, departs_ms=None)
    return jobs


def _keeps(spec: TrialSpec, timetables: Mapping[str, Timetable]) -> bool:
    """Whether no iteration begins later than its own instant by more than the threshold.

    Who misses a turn is at an instant, too, but at the next one's.
    """
    jobs = _jobs(spec, timetables)
    course = Course(list(jobs.values()), Left.always(left_by_cross_traffic(spec)))
    for _ in course:
        pass
    played = zip(jobs, (workers[0] for workers in course.iterations), strict=True)
    return all(
        each.start_ms + each.delay_ms <= jobs[name].start_ms + number * held.period_ms + held.threshold_ms
        for name, iterations in played
        if (held := timetables.get(name))
        for number, each in enumerate(iterations)
    )
