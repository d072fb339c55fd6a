# SPDX-License-Identifier: Apache-2.0
"""The factor by which timetables are stretched for jobs that can wait but not hurry, and whether jobs gain by them.

Jobs whose iterations vary, or take longer together than alone, cannot begin as often as alone. They would be late,
overlap other jobs, delay these, and miss turns. A slightly longer period costs less.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from roundabout.models.fluid.cross_traffic import residual_of_loads
from roundabout.models.fluid.engine import ITERATIONS, iteration_times
from roundabout.models.fluid.jobs import fluid_jobs
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import Timetable

ITERATIONS = 4 * ITERATIONS
"""Number of iterations for which timetables are tried, because drift takes time to show."""

SLACK = 0.002
"""Least share by which timetables are stretched, because profiles have measurement errors and clocks differ."""

STEP = 1.15
"""Factor between consecutive tried stretches."""

JITTER_FACTOR = 2.0
"""Factor on the jobs' jitter in trials of timetables, because on a real link not only computing varies."""

CONGESTED = 0.92
"""Share of a link's rate that jobs get together while they demand more than the whole rate.

Two flows over DCQCN used 0.91 to 0.95 of each link of the lab (docs/results/acceptance.md). The value comes from that
measurement, not from one with timetables.
"""

MAX_LOSS = 1.02
"""Largest mean iteration time of a job with a timetable over that without timetables."""


def stretch_timetables(spec: TrialSpec, timetables: Mapping[str, Timetable]) -> dict[str, Timetable]:
    """Return the timetables of the jobs of `spec`, all stretched by the factor with which jobs are fastest.

    Jobs are computed with jitter. The result is empty if with every factor some job is slower, by more than
    `MAX_LOSS`, than without timetables from the same starts.
    """
    if not timetables:
        return {}
    most = {name: MAX_LOSS * periods for name, periods in _mean_periods(spec, timetables, {}).items()}
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
