# SPDX-License-Identifier: Apache-2.0
"""What quantities of runs over loads share: the level of a sweep that stands for a load, and cases of sweeps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.quantities._asked import Asked, Case
from analysis.reading.loaded import NEAR_GBPS
from analysis.statistics.bootstrap import Array, Interval
from analysis.studies.load_sweep.sweeps import JobSweep

LEAST_ITERATIONS = 50
"""Below so many a 99 % tail is a guess; Salamy measures as many at least (section 3.3.2)."""


@dataclass(frozen=True)
class Level:
    """Iterations of one job at one load (Gbit/s on the wire), s."""

    load_gbps: float
    times_s: Array

    @property
    def mean_s(self) -> float:
        """Mean of all iterations."""
        return float(self.times_s.mean())

    @property
    def p99_s(self) -> float | None:
        """99 % tail; None where it would be a guess."""
        return float(np.quantile(self.times_s, 0.99)) if len(self.times_s) >= LEAST_ITERATIONS else None


def levels(study: JobSweep) -> list[Level]:
    """Every level, by rising load."""
    found = (
        Level(float(np.mean([load for load, _ in each])), np.concatenate([times for _, times in each]))
        for each in study.loaded.levels.values()
    )
    return sorted(found, key=lambda level: level.load_gbps)


def near(study: JobSweep, load_gbps: float) -> Level | None:
    """The level that stands for a load; None where none is near."""
    level = min(levels(study), key=lambda each: abs(each.load_gbps - load_gbps), default=None)
    return level if level and abs(level.load_gbps - load_gbps) <= NEAR_GBPS else None


def alone(study: JobSweep) -> Level | None:
    """The level without any load."""
    repetitions = study.loaded.levels.get(0.0)
    return Level(0.0, np.concatenate([times for _, times in repetitions])) if repetitions else None


def slower(study: JobSweep, load_gbps: float) -> float | None:
    """How many times as long as without load an iteration takes near a load."""
    level, without = near(study, load_gbps), alone(study)
    return level.mean_s / without.mean_s if level and without else None


def properties(study: JobSweep) -> dict[str, str]:
    """What tells sweeps apart."""
    loaded = study.loaded
    own = {
        "variant": loaded.variant,
        "job": loaded.job_name,
        "profile": loaded.job.profile.name,
        "model": loaded.model,
        "traffic": loaded.traffic,
        "transport": loaded.transport,
    }
    return {name: str(level) for name, level in loaded.setting.levels.items()} | own


def case(study: JobSweep, value: float, ci95: Interval | None = None) -> Case:
    """A figure of a sweep."""
    return Case(study.name, value, ci95, properties(study))


def each_sweep(asked: Asked, measure: Callable[[JobSweep], float | None]) -> list[Case]:
    """A case a sweep of which the figure is known."""
    found = ((study, measure(study)) for study in asked.sweeps)
    return [case(study, value) for study, value in found if value is not None]
