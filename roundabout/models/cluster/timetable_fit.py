# SPDX-License-Identifier: Apache-2.0
"""The factor by which an affinity subgraph's timetables are stretched, and whether its jobs gain by timetables.

The computation is like fluid/timetable_stretch.py's, for jobs of which only circles are known. Rotations that are
better than chance are not enough: a job with a timetable waits for its turns, while a job without one always gets its
share of the link.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from random import Random
from statistics import fmean
from types import MappingProxyType

import numpy as np

from roundabout.models.cassini import Circle
from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS
from roundabout.models.fluid.engine import Engine
from roundabout.models.fluid.jobs import Barrier, ComputePhase, FluidJob, SendPhase, Stream
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.models.fluid.timetable_stretch import CONGESTED
from roundabout.spec.cassini import Timetable
from roundabout.spec.topology import Direction

Links = tuple[tuple[tuple[Circle, ...], float], ...]
"""The circles of the jobs on each link, and the link's payload rate, Gbit/s."""

SLACK = 0.01
"""Least share by which periods exceed iterations.

A guess: for jobs with 0.5 % of jitter the flow-level model finds periods that are 0.5 to 1.6 % longer
(docs/explanation/cassini.md). A larger value lengthens the iterations of jobs with timetables; with a smaller value
jobs miss turns.
"""

STEP = 1.5
"""Factor between consecutive tried stretches."""

GAIN = 1.02
"""Least speed-up by which timetables are used: a guess, because circles leave out rings and jitter."""

ITERATIONS = 16
"""Played time in multiples of the longest iteration, for each job."""

DRAWS = 4
"""Number of times that jobs without timetables are played, each time with other random starts."""


def fit_timetables(links: Links, timetables: Mapping[str, Timetable]) -> dict[str, Timetable]:
    """Return the timetables, stretched by a common factor, with which jobs are fastest; empty if they do not help."""
    least = fmean(mean_slowdown(links, draw=draw) for draw in range(DRAWS)) / GAIN
    found: dict[str, Timetable] = {}
    more = SLACK
    while 1 + more < least:  # a job takes a period at least
        stretched = {job: each.stretch(1 + more) for job, each in timetables.items()}
        if (mean := mean_slowdown(links, stretched)) < least:
            least, found = mean, stretched
        more *= STEP
    return found


def mean_slowdown(links: Links, timetables: Mapping[str, Timetable] = MappingProxyType({}), draw: int = 0) -> float:
    """Return the mean over jobs of iteration time over the time alone, in the second half of the played time."""
    iterations_ms = {circle.job: circle.iteration_ms for circles, _ in links for circle in circles}
    longest_ms, random = max(iterations_ms.values()), Random(draw)
    jobs = {job: fluid_job_of(job, links, timetables.get(job), random.uniform(0, longest_ms)) for job in iterations_ms}
    means_ms = mean_iterations_ms(links, jobs, ITERATIONS * len(jobs) * longest_ms, CONGESTED)
    return fmean(means_ms[job] / ms for job, ms in iterations_ms.items())


def mean_iterations_ms(
    links: Links, jobs: Mapping[str, FluidJob], lasts_ms: float, congested: float = 1.0
) -> dict[str, float]:
    """Return each job's mean iteration time in the second half of the played time, ms; inf if it hardly gets a share.

    While several jobs need more than a link, they get the share `congested` of it.
    """
    carries = {_link_edge(place): gbps * BYTES_PER_MS_OF_GBPS for place, (_, gbps) in enumerate(links)}
    engine = Engine(ResidualCapacity.constant(carries), congested=congested)
    for name, job in jobs.items():
        engine.add(name, job)
    engine.run(lasts_ms)
    return {name: _mean_ms(engine, name) for name in jobs}


def _mean_ms(engine: Engine, job: str) -> float:
    """Return the mean of the later half."""
    begins_ms = engine.iterations(job)[0, :, 0]
    later_ms = begins_ms[len(begins_ms) // 2 :]
    return float(np.diff(later_ms).mean()) if len(later_ms) > 1 else math.inf


def fluid_job_of(job: str, links: Links, timetable: Timetable | None, start_ms: float) -> FluidJob:
    """Return a job as one worker, which sends over each link the demand of its circle there."""
    circles = {place: circle for place, (circles, _) in enumerate(links) for circle in circles if circle.job == job}
    phases = tuple(_phases(circles))
    return FluidJob(phases, workers=1, start_ms=start_ms, timetable=timetable)


def _phases(circles: Mapping[int, Circle]) -> Iterator[ComputePhase | SendPhase]:
    edges = {0.0, *(circle.iteration_ms for circle in circles.values())}
    edges |= {ms for circle in circles.values() for arc in circle.arcs for ms in (arc.begin_ms, arc.end_ms)}
    for begin_ms, end_ms in pairwise(sorted(edges)):
        demands = ((place, float(circle.demand_gbps(np.array(begin_ms, float)))) for place, circle in circles.items())
        streams = tuple(
            Stream(0, 0, (_link_edge(place),), gbps * BYTES_PER_MS_OF_GBPS * (end_ms - begin_ms))
            for place, gbps in demands
            if gbps
        )
        barriers = (Barrier((0,), tuple(range(len(streams)))),)
        yield SendPhase(streams, end_ms - begin_ms, barriers) if streams else ComputePhase(end_ms - begin_ms)


def _link_edge(place: int) -> Direction:
    return str(place), ""
