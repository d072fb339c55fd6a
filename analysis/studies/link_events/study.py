# SPDX-License-Identifier: Apache-2.0
"""The results of the study of links' events: each job's recovery from each event."""

from operator import attrgetter

import numpy as np

from analysis.expectations.results import Finite, Result, Summary, common_fields
from analysis.reading.cells import CellId, CellTrials, cells_of
from analysis.reading.recoveries import event_instants, job_times, recoveries, usual_ms
from analysis.statistics.intervals import Interval, mean_of
from roundabout.spec import Experiment, StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run


class RecoveryResult(Result):
    """A job's recovery from one event of a cell, as means over repetitions.

    `usual_ms` is the median iteration time before the first event. `recovery_ms` is None if a repetition does not
    recover. `lost_packets` are those that the event's link lost in a trial, None if they were not counted.
    """

    levels: dict[str, Level]
    job: str
    event: str
    usual_ms: float
    recovery_ms: Finite
    recovery_ci95_ms: Interval | None
    lost_iterations: float
    lost_iterations_ci95: Interval | None
    lost_packets: float | None

    @property
    def name(self) -> str:
        """Return the cell's name in tables and figures."""
        return CellId(self.levels).name if self.levels else ""


class Results(Summary):
    """The study's own results."""

    recoveries: tuple[RecoveryResult, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of a run with events of links shows."""
    found = tuple(each for cell in cells_of(run) for each in _results(run, cell))
    return Results(**common_fields(run, choice), recoveries=found)


def suits(experiment: Experiment) -> bool:
    """Return True for experiments with events of links that vary nothing but variants."""
    return any(cell.spec.events for cell in experiment.cells) and set(experiment.factors) <= {"variant"}


def _results(run: Run, cell: CellTrials) -> list[RecoveryResult]:
    made, times = recoveries(run), job_times(run)
    records = {record["trial"]: record.get("lost_packets") or {} for record in run.trials()}
    results = []
    for job in cell.jobs:
        trials = [trial for trial in cell.trials if (trial, job) in made]
        usual = [usual_ms(times[trial, job], event_instants(cell)) for trial in trials]
        for number, event in enumerate(sorted(cell.spec.events, key=attrgetter("at_ms")) if trials else ()):
            own = [made[trial, job][number] for trial in trials]
            recovery_ms, recovery_ci95_ms = mean_of([each.recovery_ms for each in own])
            lost, lost_ci95 = mean_of([each.lost_iterations for each in own])
            packets = [records[trial][event.link] for trial in trials if event.link in records[trial]]
            results.append(
                RecoveryResult(
                    levels=dict(cell.levels),
                    job=job,
                    event=str(event),
                    usual_ms=float(np.mean(usual)),
                    recovery_ms=recovery_ms,
                    recovery_ci95_ms=recovery_ci95_ms if np.isfinite(recovery_ms) else None,
                    lost_iterations=lost,
                    lost_iterations_ci95=lost_ci95,
                    lost_packets=float(np.mean(packets)) if packets else None,
                )
            )
    return results
