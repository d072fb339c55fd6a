# SPDX-License-Identifier: Apache-2.0
"""A trial as it was played: by the engine, or where flows of cross traffic take a part of links, in a course."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roundabout.fluid import Course, Direction, Floats, Iteration, capacities, fluid_jobs
from roundabout.fluid.engine import Engine
from roundabout.spec import TrialSpec
from roundabout.testbeds.fluid.trace import Trace, Worker

SAMPLES_MS = 10.0
MOST_SAMPLES = 10_000
"""Beyond that, counters are read ten times as seldom, or a hundred times: a trace of hours every second."""


@dataclass(frozen=True)
class Played:
    """What workers did, and what links carried.

    `iterations` has an array (workers, iterations, 6) by job: start, end of computing, end and delay, ms; bytes sent
    and received. `carried` are the cumulative bytes in a direction of a link at the instants `samples_ms`.
    """

    iterations: Mapping[str, Floats]
    samples_ms: Floats
    carried: Mapping[Direction, Floats]


def by_engine(spec: TrialSpec) -> Played:
    """Play a trial without cross traffic."""
    sample_ms = _sample_ms(spec)
    engine = Engine(capacities(spec.topology.links), sample_ms=sample_ms)
    jobs = fluid_jobs(spec)
    for name, job in jobs.items():
        engine.add(name, job)
    left = set(jobs)
    while left:
        left -= set(engine.run(math.inf))
    engine.run(engine.now_ms + sample_ms)
    carried = engine.carried()
    samples = min(map(len, carried.values()))
    return Played(
        {name: engine.iterations(name) for name in jobs},
        np.arange(samples, dtype=float) * sample_ms,
        {edge: sizes[:samples] for edge, sizes in carried.items()},
    )


def by_course(spec: TrialSpec, course: Course, trace: Trace) -> Played:
    """What became of a course, whose trace was taken."""
    samples_ms = np.arange(0.0, trace.at_ms[-1] + SAMPLES_MS, SAMPLES_MS)
    return Played(
        {
            name: np.array([_rows(trace, (place, rank), each) for rank, each in enumerate(workers)])
            for place, (name, workers) in enumerate(zip(spec.jobs, course.iterations, strict=True))
        },
        samples_ms,
        {edge: trace.carried(samples_ms, edge) for edge in trace.whole},
    )


def _rows(trace: Trace, worker: Worker, iterations: list[Iteration]) -> Floats:
    """A worker's part of an array of iterations."""
    times = np.array(iterations, float).reshape(-1, 4)
    counted = (trace.sent.get(worker), trace.received.get(worker))
    gained = [trace.until(times[:, 2], each) - trace.until(times[:, 0], each) for each in counted]
    return np.column_stack([times, *gained])


def _sample_ms(spec: TrialSpec) -> float:
    last_ms = max(job.departs_ms or job.begins_ms for job in spec.jobs.values())
    sample_ms = SAMPLES_MS
    while last_ms > MOST_SAMPLES * sample_ms:
        sample_ms *= 10
    return sample_ms
