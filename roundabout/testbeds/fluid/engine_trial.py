# SPDX-License-Identifier: Apache-2.0
"""Computation of a trial by the flow-level engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from roundabout.models.fluid import (
    Direction,
    Engine,
    Floats,
    ResidualCapacity,
    capacities,
    fluid_jobs,
    play_link_events,
)
from roundabout.spec import TrialSpec

SAMPLES_MS = 10.0
MAX_SAMPLES = 10_000
MAX_ROWS = 2_000_000
"""Limits of counter samples in a trial, and of these over all directions of links.

Longer trials and larger topologies multiply the sampling period by 10, 100, and so on.
"""


@dataclass(frozen=True)
class ComputedTrial:
    """The iterations of workers and the bytes on links until the last job's end at `last_ms`.

    `iterations` has an array (workers, iterations, 6) for each job: start, end of computing, end and delay in ms, bytes
    sent and bytes received. `carried` has the cumulative bytes in each direction of links at the instants `samples_ms`.
    `crossed` has the bytes of cross traffic at the end.
    """

    last_ms: float
    iterations: Mapping[str, Floats]
    samples_ms: Floats
    carried: Mapping[Direction, Floats]
    crossed: Mapping[Direction, float]


def compute_trial(spec: TrialSpec, left: ResidualCapacity) -> ComputedTrial:
    """Compute a trial whose jobs share the residual capacity `left`."""
    sample_ms = _sample_ms(spec)
    engine = Engine(left, sample_ms=sample_ms)
    jobs = fluid_jobs(spec)
    for name, job in jobs.items():
        engine.add(name, job)
    play_link_events(engine, spec)
    engine.run_to_end()
    last_ms = engine.now_ms
    engine.run(last_ms + sample_ms)
    carried = engine.carried()
    samples_ms = np.arange(min(map(len, carried.values())), dtype=float) * sample_ms
    whole = capacities(spec.topology)

    def crossed(ms: Floats, edge: Direction) -> Floats:
        within_ms = np.minimum(ms, last_ms)
        taken: Floats = whole[edge] * within_ms - left.bytes_until(within_ms, edge)
        return taken

    return ComputedTrial(
        last_ms,
        {name: engine.iterations(name) for name in jobs},
        samples_ms,
        {edge: sizes[: len(samples_ms)] + crossed(samples_ms, edge) for edge, sizes in carried.items()},
        {edge: float(crossed(np.array([last_ms]), edge)[0]) for edge in whole},
    )


def replay_trial(
    spec: TrialSpec, left: ResidualCapacity, stretches: Mapping[str, Sequence[float]]
) -> dict[str, Floats]:
    """Return the times of each job's iterations, ms, without the bytes on links.

    The computing times of iteration i of a job are multiplied by entry i of its `stretches`.
    """
    engine = Engine(left)
    jobs = fluid_jobs(spec)
    for name, job in jobs.items():
        engine.add(name, replace(job, stretches=tuple(stretches.get(name, job.stretches))))
    play_link_events(engine, spec)
    engine.run_to_end()
    found = {name: engine.iterations(name) for name in jobs}
    return {name: (each[:, :, 2] - each[:, :, 0]).max(axis=0) for name, each in found.items()}


def _sample_ms(spec: TrialSpec) -> float:
    last_ms = max(job.departs_ms or job.begins_ms for job in spec.jobs.values())
    alone_ms = max(_alone_ms(spec, name) for name in spec.jobs)
    sample_ms = SAMPLES_MS
    while last_ms > MAX_SAMPLES * sample_ms or 2 * len(spec.topology.links) * alone_ms > MAX_ROWS * sample_ms:
        sample_ms *= 10
    return sample_ms


def _alone_ms(spec: TrialSpec, name: str) -> float:
    """Return when a job alone would end, in ms after the trial's start."""
    job = spec.jobs[name]
    end_ms = job.begins_ms + spec.iterations_of(name) * job.profile.alone_ms
    return end_ms if job.departs_ms is None else min(end_ms, job.departs_ms)
