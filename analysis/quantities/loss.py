# SPDX-License-Identifier: Apache-2.0
"""What jobs learn that really train."""

import numpy as np

from analysis.quantities import Asked, Case, Reading, mean_of, quantity
from analysis.reading.data import query
from analysis.statistics.intervals import Array

PART = 10  # iterations' mean: a single batch's loss says little


@quantity("loss left", unit="%", digits=1)
def left(asked: Asked) -> list[Case]:
    """Mean loss of a repetition's last ten iterations, of that of its first ten; of jobs that train twenty."""
    losses = asked.reading.once(_losses)
    found = []
    for cell in asked.cells:
        for job in asked.jobs(cell):
            series = [losses[trial, job] for trial in cell.trials if (trial, job) in losses]
            if parts := [100 * each[-PART:].mean() / each[:PART].mean() for each in series if len(each) >= 2 * PART]:
                found.append(asked.case(cell, job, *mean_of(parts)))
    return found


def _losses(reading: Reading) -> dict[tuple[str, str], Array]:
    """By trial and job, the mean over workers."""
    rows = query(
        reading.run,
        """
        select trial, job, list(loss order by iteration) as losses from (
          select trial, job, iteration, avg(loss) as loss from iterations where loss is not null group by all
        ) group by all
        """,
    )
    return {(row["trial"], row["job"]): np.array(row["losses"]) for row in rows.to_pylist()}
