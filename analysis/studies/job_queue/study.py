# SPDX-License-Identifier: Apache-2.0
"""The results of the study of queues of jobs: slowdowns of a mix's jobs, and how long they wait."""

from collections.abc import Sequence

import numpy as np

from analysis.expectations.outcomes import ALL_JOBS, ALONE, JobSpeed, inverse_interval
from analysis.expectations.results import CellFigure, CellResult, Summary, common_fields
from analysis.reading.job_slowdowns import JobSlowdowns, read_slowdowns
from analysis.statistics.intervals import Array, estimate, tail_estimate
from roundabout.spec import Experiment, StudyChoice
from roundabout.spec.job_mix import JobMix
from roundabout.store import Run


class CellSlowdowns(CellResult):
    """The slowdowns of a cell's jobs, and their mean wait in the queue; `p99` is None with fewer than 1,000 jobs."""

    repetitions: int
    jobs: int
    mean: CellFigure
    p90: CellFigure
    p99: CellFigure | None
    worst: float
    queueing_mean_s: CellFigure
    moves: float


class Results(Summary):
    """The study's own results."""

    slowdowns: tuple[CellSlowdowns, ...]

    @property
    def speeds(self) -> tuple[JobSpeed, ...]:
        """Return the speed of all jobs of each cell together: one over their mean slowdown."""
        return tuple(
            JobSpeed(cell.levels, ALL_JOBS, 1 / cell.mean.value, inverse_interval(cell.mean.ci95), ALONE)
            for cell in self.slowdowns
        )


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of a queue of jobs shows."""
    return Results(**common_fields(run, choice), slowdowns=tuple(map(_cell, read_slowdowns(run))))


def suits(experiment: Experiment) -> bool:
    """Return True for experiments whose trials are all mixes of jobs."""
    clusters = [cell.spec.cluster for cell in experiment.cells]
    return all(each is not None and isinstance(each.trace, JobMix) for each in clusters)


def _cell(cell: JobSlowdowns) -> CellSlowdowns:
    slowdowns = cell.slowdowns
    return CellSlowdowns(
        levels=dict(cell.id.levels),
        repetitions=len(slowdowns),
        jobs=sum(map(len, slowdowns)),
        mean=CellFigure.of(estimate(slowdowns, np.mean, at_least=1)),
        p90=CellFigure.of(estimate(slowdowns, _p90, at_least=1)),
        p99=CellFigure.of(tail) if (tail := tail_estimate(slowdowns)) else None,
        worst=max(float(each.max()) for each in slowdowns),
        queueing_mean_s=CellFigure.of(estimate(cell.queueing_s, np.mean, at_least=0)),
        moves=float(np.mean([job.moves for jobs in cell.jobs for job in jobs])),
    )


def _p90(slowdowns: Array | Sequence[float]) -> float:
    return float(np.quantile(slowdowns, 0.9))
