# SPDX-License-Identifier: Apache-2.0
"""Targets of a calibration of the lab: figures of a time-dilated run that a run without dilation must meet.

All targets are dimensionless, and none comes from a paper, though a paper may have determined the run's set of
parameters. The tolerances are ours.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from analysis.reading.cells import CellId, CellTrials, cells_of, experiment_of, first_shares
from analysis.reading.congestion.marks import JobMarks, marks_of_cells
from analysis.reading.speedups import baseline_of
from roundabout.models.fluid import fluid_limits
from roundabout.spec import Experiment
from roundabout.spec.experiment import FAIR, Cell
from roundabout.store import Run, StoreError

ALLOWED_SHARE = 0.1
"""Tolerance of the bandwidth share in the first iteration, as a share of the target."""
ALLOWED_SPEEDUP = 0.02
"""Tolerance of a speed-up of the median iteration time, absolute."""
ALLOWED_MARKS = 0.15
"""Tolerance of the marks per iteration over the fair cell's, absolute."""
ALLOWED_EXCESS_SHARE = 0.02
"""Tolerance of the median fair iteration time over the fluid model's, absolute."""

ALLOWED_DRIFT = 0.03
"""Tolerance of the last quarter of fair iterations over the first, absolute."""

MIN_ITERATIONS = 8
"""Least iterations of a run, because its first and last quarter are compared."""


@dataclass(frozen=True)
class Target:
    """A figure that a calibrated run must meet within its tolerance."""

    name: str
    value: float
    allowed: float


@dataclass(frozen=True)
class TargetFit:
    """The figure found for each target, and its signed deviation in units of the tolerance."""

    found: Mapping[str, float]
    off: Mapping[str, float]

    @property
    def misfit(self) -> float:
        """Return the root mean square of the deviations in tolerances: 0 if all are met exactly."""
        return math.sqrt(fmean(each**2 for each in self.off.values()))


@dataclass(frozen=True)
class _MeasuredCell:
    """A cell in which jobs share links, and the known marks of each job."""

    cell: CellTrials
    marks: Mapping[str, JobMarks]

    @property
    def median_ms(self) -> float:
        """Return the median of all iterations of all jobs."""
        return float(np.median(np.concatenate([each for job in self.cell.jobs for each in self.cell.repetitions(job)])))

    @property
    def marks_per_iteration(self) -> float:
        """Return the sum of all jobs' mean marks. Raises StoreError if one job's are not known."""
        if missing := [job for job in self.cell.jobs if job not in self.marks]:
            raise StoreError(f"found no marks of {missing[0]} in cell {self.cell.name}, expected them of every job")
        return math.fsum(float(np.concatenate(self.marks[job].known).mean()) for job in self.cell.jobs)


def training_experiment(run: Run) -> Experiment:
    """Return the experiment by which a candidate calibration is measured.

    It has each of the run's cells in which jobs share links, with one repetition and without expectations.

    Raises:
        StoreError: time was not dilated in this run, or not alike; it has too few iterations, or its cells name
            several sets of parameters or thresholds, of which a calibration replaces all.
    """
    stretched = run.manifest["testbed"].get("dilation", 1.0)
    if stretched <= 1:
        raise StoreError(f"{run.path}: found a dilation of {stretched:g}, expected a run with one above 1")
    if own := run.manifest["testbed"].get("identity", {}).get("transport_dilation"):
        raise StoreError(f"{run.path}: found a transport_dilation of {own:g}, expected times stretched alike")
    experiment = experiment_of(run)
    cells = tuple(cell for cell in experiment.cells if cell.spec.has_concurrent_jobs)
    if (fewest := min((cell.spec.iterations for cell in cells), default=MIN_ITERATIONS)) < MIN_ITERATIONS:
        raise StoreError(f"{run.path}: found {fewest} iterations, expected {MIN_ITERATIONS} at least")
    if len(named := {_published_parameters(cell) for cell in cells}) != 1:
        found = " and ".join(sorted(named)) or "no cell in which jobs meet"
        raise StoreError(f"{run.path}: found {found}, expected one set of parameters and thresholds in all cells")
    factors = {
        name: tuple(level for level in levels if any(cell.levels[name] == level for cell in cells))
        for name, levels in experiment.factors.items()
    }
    changes = {"name": f"calibrate-{experiment.name.removeprefix('calibrate-')}"[:64], "repetitions": 1, "expect": ()}
    return experiment.model_copy(update={**changes, "cells": cells, "factors": factors})


def targets_of(run: Run) -> tuple[Target, ...]:
    """Return the figures that a calibration must meet: of each fair cell, and of other cells relative to a fair one.

    Raises:
        StoreError: a cell in which jobs share links has no valid trial (a disturbed one does not suffice), or no fair
            cell at the same levels, or lacks the data for one of the figures.
    """
    cells = cells_of(run)
    requested = [CellId(cell.levels) for cell in experiment_of(run).cells if cell.spec.has_concurrent_jobs]
    every = (_MeasuredCell(*each) for each in zip(cells, marks_of_cells(run, cells), strict=True))
    concurrent = [each for each in every if each.cell.id in requested]
    if lacking := [each.name for each in requested if each not in [cell.cell.id for cell in concurrent]]:
        raise StoreError(f"{run.path}: found no valid trial of {' and '.join(lacking)}, expected one of each cell")
    if disturbed := [each.cell.name for each in concurrent if each.cell.disturbance is not None]:
        raise StoreError(f"{run.path}: found {' and '.join(disturbed)}, expected a valid trial of each cell")
    return tuple(target for each in concurrent for target in _figures(run, each, concurrent))


def compare_with_targets(targets: Sequence[Target], run: Run) -> TargetFit:
    """Return the figures of a candidate's run and their deviations from the targets.

    Raises StoreError as `targets_of` does.
    """
    found = {each.name: each.value for each in targets_of(run)}
    if missing := [each.name for each in targets if each.name not in found]:
        raise StoreError(f"{run.path}: found no {missing[0]}, expected it as in the run that is to be met")
    off = {each.name: (found[each.name] - each.value) / each.allowed for each in targets}
    return TargetFit({name: found[name] for name in off}, off)


def _drift(cell: CellTrials, job: str) -> float:
    """Return how much longer the last quarter of a job's iterations takes than the first, as a share of that."""
    quarter = min(len(times) for times in cell.repetitions(job)) // 4

    def mean(which: slice) -> float:
        return fmean(float(times[which].mean()) for times in cell.repetitions(job))

    return mean(slice(-quarter, None)) / mean(slice(0, quarter)) - 1


def _published_parameters(cell: Cell) -> str:
    """Return the published parameters that the transports of a cell name, all in one line, to be compared."""
    requested = {
        (each.published.name if each.published else "no set", str(each.thresholds or "no thresholds"))
        for each in (job.transport for job in cell.spec.jobs.values())
    }
    return "; ".join(", ".join(each) for each in sorted(requested))


def _figures(run: Run, own: _MeasuredCell, cells: Sequence[_MeasuredCell]) -> Iterator[Target]:
    name = own.cell.name
    if own.cell.variant == FAIR:
        fair_ms = fmean(limit.fair_ms for limit in fluid_limits(own.cell.spec).values())
        drift = fmean(_drift(own.cell, job) for job in own.cell.jobs)
        yield Target(f"excess of {name}", own.median_ms / fair_ms - 1, ALLOWED_EXCESS_SHARE)
        yield Target(f"drift of {name}", drift, ALLOWED_DRIFT)
        return
    beside = baseline_of([each.cell for each in cells], own.cell, FAIR)
    fair = next((each for each in cells if each.cell is beside), None)
    if fair is None:
        raise StoreError(f"{run.path}: found no cell {FAIR} beside {name}, expected one at the same levels")
    first, *others = own.cell.jobs
    for other in others:
        share = _share(run, own.cell, first, other)
        yield Target(f"share {first}/{other} of {name}", share, ALLOWED_SHARE * share)
    yield Target(f"speed-up of {name}", fair.median_ms / own.median_ms, ALLOWED_SPEEDUP)
    yield Target(f"marks of {name} over {FAIR}", _marks_over(own, fair, run), ALLOWED_MARKS)


def _share(run: Run, cell: CellTrials, one: str, other: str) -> float:
    if shares := first_shares(run, cell, one, other):
        return fmean(shares)
    raise StoreError(f"{run.path}: found no counters of the first iteration of {cell.name}, expected them")


def _marks_over(own: _MeasuredCell, fair: _MeasuredCell, run: Run) -> float:
    if marks := fair.marks_per_iteration:
        return own.marks_per_iteration / marks
    raise StoreError(f"{run.path}: found no marks in {fair.cell.name}, expected some to compare with")
