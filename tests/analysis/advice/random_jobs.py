# SPDX-License-Identifier: Apache-2.0
"""Random jobs with jitter, what counters of their hosts say, and what becomes of them on one link: all in the fluid."""

from dataclasses import dataclass, replace

import numpy as np

from analysis.advice.counters import HostCounter
from analysis.advice.expected_slowdown import apply_schedule, fluid_job, mean_ms
from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from tests.fluid.oracle.model import Simulation

CAPACITY_GBPS = 50.0
SAMPLES_MS = 10.0
MISSING = 0.1
"""Of the samples."""
SAMPLED = 60
"""Iterations of the slowest job."""
ALIKE = (1.0, 1.0, 1.0, 2.0)
"""Periods that jobs of one cluster may have of each other's: many of them train alike."""


@dataclass(frozen=True)
class Played:
    """A job as it is: phases of ms and, where they send, bytes; jitter as a share of its computing time."""

    phases: tuple[tuple[float, float | None], ...]
    jitter: float

    @property
    def alone_ms(self):
        return sum(ms for ms, _ in self.phases)

    def job(self, path, generator, iterations=400):
        stretches = np.maximum(1 + self.jitter * generator.normal(size=iterations), 0)
        return fluid_job(self.phases, [path], stretches)


def send(gbps, ms):
    return (ms, gbps * BYTES_PER_MS_OF_GBPS * ms)


def mix(seed):
    """Two to four jobs. In half of the mixes they are one model or two, some at twice the batch; else any."""
    generator = np.random.default_rng([1, seed])
    count, alike = int(generator.integers(2, 5)), generator.random() < 0.5
    models = [_shares(generator) for _ in range(generator.integers(1, 3) if alike else count)]
    base_ms = generator.uniform(120, 300)
    jobs = {}
    for number in range(count):
        times = generator.choice(ALIKE) * generator.uniform(0.997, 1.003) if alike else generator.uniform(0.5, 1.5)
        model = models[generator.integers(len(models))] if alike else models[number]
        jobs[f"j{number + 1}"] = _played(base_ms * times, model, generator)
    return jobs


def _shares(generator):
    """A model: one phase that sends, or two with computing between them, as shares of the period and Gbit/s."""
    peaks = int(generator.choice([1, 1, 2]))
    sends = [(generator.uniform(0.15, 0.5) / peaks, generator.uniform(25, 50)) for _ in range(peaks)]
    parts = [part for each in sends for part in ((0.12, None), each)][1:]
    return [(1 - sum(share for share, _ in parts), None), *parts]


def _played(period_ms, model, generator):
    phases = [(share * period_ms, None) if gbps is None else send(gbps, share * period_ms) for share, gbps in model]
    return Played(tuple(phases), float(generator.uniform(0.002, 0.01)))


def counters(jobs, seed=0, step_ms=SAMPLES_MS):
    """Two hosts of each job, `j1a` and `j1b`, while each job has a link to itself."""
    generator = np.random.default_rng([2, seed])
    lasts_ms = SAMPLED * max(job.alone_ms for job in jobs.values())
    playing = {name: job.job([(name, "")], generator, 2000) for name, job in jobs.items()}
    ending = [replace(job, departs_ms=lasts_ms) for job in playing.values()]
    left = ResidualCapacity.constant({(name, ""): CAPACITY_GBPS * BYTES_PER_MS_OF_GBPS for name in jobs})
    at_ms, gained = [0.0], [np.zeros(len(jobs))]
    for interval in Simulation(ending, left):
        at_ms.append(interval.end_ms)
        gained.append(np.zeros(len(jobs)))
        for rate in interval.rates:
            gained[-1][rate.job] += rate.bytes_per_ms * (interval.end_ms - interval.begin_ms)
    totals = np.cumsum(gained, axis=0)
    found = {}
    for place, name in enumerate(jobs):
        for host in ("a", "b"):
            when = np.arange(generator.uniform(0, step_ms), lasts_ms, step_ms)
            when += generator.uniform(0, 0.4, len(when))
            when = when[generator.random(len(when)) >= MISSING]
            sent = np.interp(when, at_ms, totals[:, place])
            found[name + host] = HostCounter((when * 1e6).astype(np.int64), np.floor(sent))
    return found


def senders(jobs):
    return {name: (f"{name}a", f"{name}b") for name in jobs}


def measured(jobs, seed, schedule=None, *, apart=False, anywhere=False):
    """Each job's mean iteration on one link with all others, begun together or `anywhere`; `apart`: on its own."""
    generator = np.random.default_rng([3, seed, schedule is not None, apart, anywhere])
    rates = {(name if apart else "link", ""): CAPACITY_GBPS * BYTES_PER_MS_OF_GBPS for name in (*jobs, "link")}
    played = {name: job.job([(name if apart else "link", "")], generator) for name, job in jobs.items()}
    if apart:
        return np.array([mean_ms([job], rates)[0] for job in played.values()])
    begins_ms = [generator.uniform(0, job.alone_ms) if anywhere else 0.0 for job in jobs.values()]
    together = [replace(job, start_ms=ms) for job, ms in zip(played.values(), begins_ms, strict=True)]
    return np.array(mean_ms(apply_schedule(schedule, list(jobs), together) if schedule else together, rates))
