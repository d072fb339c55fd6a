# SPDX-License-Identifier: Apache-2.0
"""The stretch of timetables for jobs that can wait but not hurry, and whether jobs gain by them.

Jobs that vary, or that take longer together than alone, cannot begin as often as alone: they would be late, overlap
others, make these late, and miss turns. A slightly longer period costs less than that.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from roundabout.models.fluid.cross_traffic import residual_of_loads
from roundabout.models.fluid.jobs import fluid_jobs
from roundabout.models.fluid.model import ITERATIONS, iteration_times
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import Timetable

ITERATIONS = 4 * ITERATIONS
"""For how many iterations they are tried: what drifts takes time to show."""

SLACK = 0.002
"""By which share they are stretched at least: profiles are measured, and clocks differ."""

STEP = 1.15
"""How many times as much is tried next."""

JITTER_FACTOR = 2.0
"""How many times the jobs' jitter they are tried with: on a real link more than computing varies."""

CONGESTED = 0.92
"""The share of a link's rate that jobs get there together, while they ask for more than all of it.

Two flows over DCQCN used 0.91 to 0.95 of each link of the lab (docs/how-to/acceptance.md): it was found there, on no
schedule.
"""

MOST_LOSS = 1.02
"""Upper limit of a held job's mean iteration, over that of the job without timetables."""


def stretch_timetables(spec: TrialSpec, timetables: Mapping[str, Timetable]) -> dict[str, Timetable]:
    """Return the timetables of the jobs of `spec`, all stretched by the factor with which jobs are fastest.

    Jobs are computed with their jitter. Return none if, with each factor, some job is slower by more than `MOST_LOSS`
    than if all began at the same instants without timetables.
    """
    if not timetables:
        return {}
    most = {name: MOST_LOSS * periods for name, periods in _mean_periods(spec, timetables, {}).items()}
    found: dict[str, Timetable] = {}
    more, least = SLACK, math.inf
    while 1 + more < min(least, *most.values()):  # a job takes a period at least
        stretched = {name: each.stretch(1 + more) for name, each in timetables.items()}
        periods = _mean_periods(spec, timetables, stretched)
        mean = float(np.mean(list(periods.values())))
        if mean < least and all(periods[name] <= most[name] for name in periods):
            least, found = mean, stretched
        more *= STEP
    return found


def _mean_periods(
    spec: TrialSpec, timetables: Mapping[str, Timetable], held: Mapping[str, Timetable]
) -> dict[str, float]:
    """Return each job's mean iteration in periods of `timetables`, with the timetables `held`, or without any."""
    generator = np.random.default_rng(0)
    jobs = []
    for name, job in fluid_jobs(spec).items():
        timetable = held.get(name) or timetables.get(name)
        begins_ms = job.start_ms + (timetable.early_ms(job.start_ms) if timetable else 0.0)
        stretches = np.maximum(1 + JITTER_FACTOR * spec.jobs[name].jitter * generator.normal(size=ITERATIONS), 0)
        jobs.append(replace(job, timetable=held.get(name), start_ms=begins_ms, stretches=tuple(stretches.tolist())))
    played = iteration_times(jobs, residual_of_loads(spec), ITERATIONS, CONGESTED)
    times = dict(zip(spec.jobs, played, strict=True))
    return {name: float(np.mean(times[name])) / each.period_ms for name, each in timetables.items()}
