# SPDX-License-Identifier: Apache-2.0
"""The results of the study of programs: their bus bandwidths beside a baseline, and what hosts' counters counted."""

from collections.abc import Callable, Sequence

import numpy as np

from analysis.expectations.results import CellFigure, Result, Summary, common_fields
from analysis.reading.cells import CellId, CellTrials, cells_of, experiment_of
from analysis.reading.data import HostPlace, by_iteration, counters, filter_rows, iterations
from analysis.reading.disturbance import widen
from analysis.reading.speedups import baseline_of
from analysis.statistics.intervals import Measured, mean_of, ratio
from roundabout.spec import Experiment, StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run

Repetitions = dict[tuple[CellId, str], list[float]]  # a figure of each repetition, by cell and job


class Bandwidth(Result):
    """The bandwidths of one job in one cell, Gbit/s, means over its iterations.

    `bus_gbps` is what the job's program reported, and `gain` that over the baseline's. `sent_gbps` is what the host of
    the job that sent most sent by its counters, headers included, from the first iteration's start to the last one's
    end. None is unknown.
    """

    levels: dict[str, Level]
    job: str
    bus_gbps: CellFigure | None
    gain: CellFigure | None
    sent_gbps: CellFigure | None

    @property
    def id(self) -> CellId:
        """Return the id of the cell."""
        return CellId(self.levels)


class Results(Summary):
    """The study's own results."""

    bandwidths: tuple[Bandwidth, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of programs shows."""
    cells, base = cells_of(run), experiment_of(run).baseline
    bus, sent = _bus_bandwidths(run, cells), _sent_bandwidths(run, cells)
    found = []
    for cell in cells:
        baseline = baseline_of(cells, cell, base.level, base.factor)
        for job in cell.jobs:
            own, other = _mean(bus, cell, job), baseline and _mean(bus, baseline, job)
            gain = ratio(own, other) if own and other and baseline is not cell else None
            bandwidth = Bandwidth(
                levels=dict(cell.levels),
                job=job,
                bus_gbps=_figure(own),
                gain=_figure(gain),
                sent_gbps=_figure(_mean(sent, cell, job)),
            )
            found.append(bandwidth)
    return Results(**common_fields(run, choice), bandwidths=tuple(found))


def suits(experiment: Experiment) -> bool:
    """Return True for experiments with a job that does not play its profile."""
    return any(not job.trainer.plays_profile for cell in experiment.cells for job in cell.spec.jobs.values())


def _figure(measured: Measured | None) -> CellFigure | None:
    return CellFigure.of(measured) if measured else None


def _mean(found: Repetitions, cell: CellTrials, job: str) -> Measured | None:
    figures = found.get((cell.id, job))
    return widen(mean_of(figures, at_least=0), cell.disturbance) if figures else None


def _bus_bandwidths(run: Run, cells: Sequence[CellTrials]) -> Repetitions:
    reported = by_iteration(run, "avg(bus_bandwidth_gbps)")
    return _each(
        cells, lambda trial, _cell, job: float(reported[trial, job].mean()) if (trial, job) in reported else None
    )


def _sent_bandwidths(run: Run, cells: Sequence[CellTrials]) -> Repetitions:
    sent, of_jobs = counters(run, "tx_bytes"), iterations(run)

    def most(trial: str, cell: CellTrials, job: str) -> float | None:
        rows = filter_rows(of_jobs, trial=trial, job=job)
        places = [HostPlace(trial, host) for host in dict.fromkeys(cell.spec.jobs[job].workers)]
        known = [sent[place] for place in places if place in sent]
        if not rows.num_rows or not known:
            return None
        ends = np.array([min(rows["start_ns"].to_pylist()), max(rows["comm_end_ns"].to_pylist())])
        return max(float(each.rate(ends)[0]) * 8 / 1e9 for each in known)

    return _each(cells, most)


def _each(cells: Sequence[CellTrials], figure: Callable[[str, CellTrials, str], float | None]) -> Repetitions:
    """Return a figure of each trial, by cell and job, without unknown ones."""
    found: Repetitions = {}
    for cell in cells:
        for job in cell.times:
            each = [figure(trial, cell, job) for trial in cell.trials]
            found[cell.id, job] = [value for value in each if value is not None]
    return found
