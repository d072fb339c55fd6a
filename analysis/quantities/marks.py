# SPDX-License-Identifier: Apache-2.0
"""ECN marks per iteration of each job, and marks and drops of all jobs together."""

import math
from collections.abc import Sequence

import numpy as np

from analysis.quantities import CachedReading, Case, QuantityRequest, mean_of, quantity
from analysis.reading.cells import CellTrials
from analysis.reading.congestion.marks import JobMarks, marks_of_cells
from analysis.reading.congestion.marks_and_drops import count_signals, counts_of_cell
from analysis.reading.speedups import baseline_of
from analysis.statistics.intervals import Array, Measured, estimate, ratio


@quantity("ECN marks per iteration", unit="marks", digits=0)
def marks(request: QuantityRequest) -> list[Case]:
    """Return the mean number of ECN marks of a job's packets per iteration."""
    reported = zip(request.reading.cells, request.reading.cached(_marks), strict=True)
    return [
        request.case(cell, job, *estimate(own[job].known, np.mean, at_least=0))
        for cell, own in reported
        if cell in request.cells
        for job in request.jobs(cell)
        if job in own
    ]


@quantity("marks and drops per iteration", unit="packets", digits=1, by="variant")
def lost(request: QuantityRequest) -> list[Case]:
    """Return the packets that all switch ports together marked or dropped per iteration of the first job.

    The mean of repetitions.
    """
    return [
        Case(request.name_of(cell), *found, cell.properties)
        for cell in request.cells
        if (found := _marks_and_drops(request.reading, cell))
    ]


def _describe_ratio(cases: Sequence[Case]) -> str:
    reported = ["none left" if math.isinf(case.value) else f"{case.value:.2f} times fewer" for case in cases]
    return ", ".join(
        f"{case.name}: {each}" if len(cases) > 1 else each for case, each in zip(cases, reported, strict=True)
    )


@quantity("fewer marks and drops per iteration", unit="times", needs=("over",), by="variant", note=_describe_ratio)
def fewer(request: QuantityRequest) -> list[Case]:
    """Return marks and drops per iteration of variant `over` over those of `of`; infinite if `of` has none."""
    cases = []
    for cell in request.cells:
        base = baseline_of(request.cells_of(request.over), cell, str(request.over))
        before, after = (_marks_and_drops(request.reading, each) if each else None for each in (base, cell))
        if before and after and before[0] > 0:
            found = ratio(before, after) if after[0] > 0 else (math.inf, None)
            cases.append(Case(request.name_of(cell), *found, {"variant": cell.variant}))
    return cases


def _marks_and_drops(reading: CachedReading, cell: CellTrials) -> Measured | None:
    known = counts_of_cell(reading.cached(_signals), cell)
    return mean_of([float(each.mean()) for each in known], at_least=0) if known else None


def _marks(reading: CachedReading) -> list[dict[str, JobMarks]]:
    return marks_of_cells(reading.run, reading.cells)


def _signals(reading: CachedReading) -> dict[str, Array]:
    return count_signals(reading.run, reading.cells)
