# SPDX-License-Identifier: Apache-2.0
"""What all switch ports together marked or dropped, by iteration: whose packets it were does not matter."""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.reading.cells import CellTrials
from analysis.reading.data import iterations, ports, rows_of
from analysis.statistics.intervals import Array
from roundabout.store import Run

WHAT = ("marks", "drops")


def signals(run: Run, cells: Sequence[CellTrials], what: Sequence[str] = WHAT) -> dict[str, Array]:
    """By trial, packets marked or dropped in each iteration of its first job, from begin to begin; nan where unknown.

    Trials of which no port's counter is known are left out.
    """
    of_jobs = iterations(run)
    counted = [{place: own for place, own in ports(run, each).items() if len(own.at_ns)} for each in what]
    found: dict[str, Array] = {}
    for cell in cells:
        for trial in cell.trials:
            own = [port for each in counted for place, port in each.items() if place.trial == trial]
            if own:
                job = next(job for job in cell.jobs if rows_of(of_jobs, trial=trial, job=job).num_rows)
                rows = rows_of(of_jobs, trial=trial, job=job)
                edges_ns = np.append(rows["start_ns"].to_numpy(), rows["comm_end_ns"].to_numpy()[-1:])
                gains = [port.between(edges_ns) for port in own]
                found[trial] = np.sum([np.where(each.known, each.counts, np.nan) for each in gains], axis=0)
    return found


def of_trials(found: Mapping[str, Array], cell: CellTrials) -> list[Array]:
    """Those of a cell's trials that are known, an array a trial, without iterations that are not."""
    known = [found[trial][np.isfinite(found[trial])] for trial in cell.trials if trial in found]
    return [each for each in known if len(each)]
