# SPDX-License-Identifier: Apache-2.0
"""ECN marks per iteration of each job, and marks and drops of all jobs together."""

import math
from collections.abc import Sequence

import numpy as np

from analysis.quantities import Asked, Case, Reading, mean_of, quantity
from analysis.reading.cells import CellTrials, baseline_of
from analysis.reading.marks import JobMarks, of_cells
from analysis.reading.marks_and_drops import of_trials, signals
from analysis.statistics.intervals import Array, Measured, estimate, ratio


@quantity("ECN marks per iteration", unit="marks", digits=0)
def marks(asked: Asked) -> list[Case]:
    """Return the mean marks of a job's packets over all iterations."""
    told = zip(asked.reading.cells, asked.reading.once(_marks), strict=True)
    return [
        asked.case(cell, job, *estimate(own[job].known, np.mean, at_least=0))
        for cell, own in told
        if cell in asked.cells
        for job in asked.jobs(cell)
        if job in own
    ]


@quantity("marks and drops per iteration", unit="packets", digits=1, by="variant")
def lost(asked: Asked) -> list[Case]:
    """Return the packets that all switch ports marked or dropped in an iteration of the first job.

    The mean of repetitions.
    """
    return [
        Case(asked.called(cell), *found, cell.properties)
        for cell in asked.cells
        if (found := _lost(asked.reading, cell))
    ]


def _times(cases: Sequence[Case]) -> str:
    told = ["none left" if math.isinf(case.value) else f"{case.value:.2f} times fewer" for case in cases]
    return ", ".join(f"{case.name}: {each}" if len(cases) > 1 else each for case, each in zip(cases, told, strict=True))


@quantity("fewer marks and drops per iteration", unit="times", needs=("over",), by="variant", note=_times)
def fewer(asked: Asked) -> list[Case]:
    """Return the marks and drops of variant `over` over those of `of`; infinite, without interval, if `of` has none."""
    cases = []
    for cell in asked.cells:
        base = baseline_of(asked.cells_of(asked.over), cell, str(asked.over))
        before, after = (_lost(asked.reading, each) if each else None for each in (base, cell))
        if before and after and before[0] > 0:
            found = ratio(before, after) if after[0] > 0 else (math.inf, None)
            cases.append(Case(asked.called(cell), *found, {"variant": cell.variant}))
    return cases


def _lost(reading: Reading, cell: CellTrials) -> Measured | None:
    known = of_trials(reading.once(_signals), cell)
    return mean_of([float(each.mean()) for each in known], at_least=0) if known else None


def _marks(reading: Reading) -> list[dict[str, JobMarks]]:
    return of_cells(reading.run, reading.cells)


def _signals(reading: Reading) -> dict[str, Array]:
    return signals(reading.run, reading.cells)
