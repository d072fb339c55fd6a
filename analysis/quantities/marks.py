# SPDX-License-Identifier: Apache-2.0
"""ECN marks per iteration of each job."""

import numpy as np

from analysis.quantities import Asked, Case, Reading, quantity
from analysis.quantities._asked import estimate
from analysis.reading.marks import JobMarks, of_cells


@quantity("ECN marks per iteration", unit="marks", digits=0)
def marks(asked: Asked) -> list[Case]:
    """Mean over all iterations of what a job's packets were marked."""
    cases = []
    for cell, own in zip(asked.reading.cells, asked.reading.once(_marks), strict=True):
        for job in asked.jobs(cell) if cell in asked.cells else ():
            if job in own:
                known = [each[:, None] for each in own[job].known]
                cases.append(asked.case(cell, job, *estimate(known, lambda counts: np.mean(counts, axis=1))))
    return cases


def _marks(reading: Reading) -> list[dict[str, JobMarks]]:
    return of_cells(reading.run, reading.cells)
