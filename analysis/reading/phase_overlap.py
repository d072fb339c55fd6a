# SPDX-License-Identifier: Apache-2.0
"""The overlap of phases of jobs that share links, by iteration, and their offsets."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from analysis.statistics.cumulative_counter import Floats
from roundabout.models.fluid import Engine, FluidJob, ResidualCapacity, capacities, fluid_jobs
from roundabout.models.fluid.jobs import ComputePhase, SendPhase
from roundabout.spec import TrialSpec

OVERLAP = 0.05
"""Jobs are interleaved while their communication phases overlap by less than this part of the shorter phase."""
LASTING_ITERATIONS = 10
"""Number of consecutive iterations for which jobs must be interleaved. Both bounds are ours: the papers draw
interleaving, but do not define it.
"""

Spans = Mapping[str, Floats]
"""Begin and end of communication in each iteration, by job, in any unit of time; shape (iterations, 2)."""


def select_jobs(spans: Spans, jobs: Iterable[str]) -> dict[str, Floats]:
    """Return the spans of these jobs, in their order, such as of those that share a link."""
    return {job: spans[job] for job in jobs}


def compute_overlaps(spans: Spans) -> Floats:
    """Return for each iteration the largest overlap of two jobs' phases, as a share of the shorter phase.

    All jobs share one link (`select_jobs`).
    An overlap counts in the iteration of the first job in which it begins. Iterations go from one end of communication
    to the next. Only iterations before the end of the job that ends first count.
    """
    ends = _while_all_run(spans)[:, 1]
    largest = np.zeros(len(ends))
    for one, other in combinations(spans.values(), 2):
        begin, end = np.maximum.outer(one[:, 0], other[:, 0]), np.minimum.outer(one[:, 1], other[:, 1])
        shorter = np.minimum.outer(one[:, 1] - one[:, 0], other[:, 1] - other[:, 0])
        number = np.searchsorted(ends, begin, side="right")
        meet = (end > begin) & (shorter > 0) & (number < len(ends))
        np.maximum.at(largest, number[meet], (end - begin)[meet] / shorter[meet])
    return largest


def first_lasting(overlap: Floats) -> int | None:
    """Return the first iteration, counted from 1, of `LASTING_ITERATIONS` consecutive interleaved ones.

    None if there is no such iteration.
    """
    apart = (overlap < OVERLAP).astype(int)
    running = (
        np.convolve(apart, np.ones(LASTING_ITERATIONS, int), mode="valid")
        if len(apart) >= LASTING_ITERATIONS
        else np.empty(0)
    )
    found = np.flatnonzero(running == LASTING_ITERATIONS)
    return int(found[0]) + 1 if len(found) else None


def compute_offsets(spans: Spans) -> dict[str, Floats]:
    """Return, by job, the distance from each begin of the first job's communication to the job's nearest begin.

    The distance is at most half an iteration; each array has shape (iterations,).
    """
    _first, *others = spans
    begins = _while_all_run(spans)[:, 0]
    return {job: np.abs(np.subtract.outer(begins, spans[job][:, 0])).min(axis=1) for job in others}


def _while_all_run(spans: Spans) -> Floats:
    """Return the first job's spans up to the end of the first job that ends."""
    first = next(iter(spans.values()))
    until = min(float(each[-1, 1]) for each in spans.values())
    return np.asarray(first[first[:, 1] <= until])


def simulate_from_spans(spec: TrialSpec, spans: Spans) -> tuple[dict[str, Floats], dict[str, Floats]] | None:
    """Return the spans and the iteration times, ms, of a trial in the flow-level model, by job.

    Jobs begin to communicate at the same distances as in `spans`, ms. The model has MLTCP's F, but no timers and no
    jitter. None for a trial with cross traffic, because its flows are random.
    """
    if spec.cross_traffic:
        return None
    known = {name: job for name, job in fluid_jobs(spec).items() if name in spans}
    starts = {name: float(spans[name][0, 0]) - _first_compute_ms(job) for name, job in known.items()}
    engine = Engine(ResidualCapacity.constant(capacities(spec.topology)))
    for name, job in known.items():
        engine.add(name, replace(job, start_ms=starts[name] - min(starts.values())))
    engine.run_to_end()
    played = {name: engine.iterations(name) for name in known}
    sending = {name: np.column_stack([each[0, :, 1], each[:, :, 2].max(axis=0)]) for name, each in played.items()}
    times = {name: (each[:, :, 2] - each[:, :, 0]).max(axis=0) for name, each in played.items()}
    return sending, times


def _first_compute_ms(job: FluidJob) -> float:
    """Return its computing time before it first sends."""
    lead = 0.0
    for phase in job.phases:
        if isinstance(phase, SendPhase):
            break
        lead += phase.ms if isinstance(phase, ComputePhase) else 0.0
    return lead
