# SPDX-License-Identifier: Apache-2.0
"""ECN marks per iteration of each job."""

import numpy as np

from analysis.quantities import Asked, Case, Reading, quantity
from analysis.reading.marks import JobMarks, of_cells
from analysis.statistics.intervals import estimate


@quantity("ECN marks per iteration", unit="marks", digits=0)
def marks(asked: Asked) -> list[Case]:
    """Mean over all iterations of what a job's packets were marked."""
    told = zip(asked.reading.cells, asked.reading.once(_marks), strict=True)
    return [
        asked.case(cell, job, *estimate(own[job].known, np.mean, at_least=0))
        for cell, own in told
        if cell in asked.cells
        for job in asked.jobs(cell)
        if job in own
    ]


def _marks(reading: Reading) -> list[dict[str, JobMarks]]:
    return of_cells(reading.run, reading.cells)
