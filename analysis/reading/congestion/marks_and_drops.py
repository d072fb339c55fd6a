# SPDX-License-Identifier: Apache-2.0
"""Marks or drops of all switch ports together, by iteration, whichever job's packets they were."""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.reading.cells import CellTrials
from analysis.reading.data import filter_rows, iterations, ports
from analysis.statistics.intervals import Array
from roundabout.store import Run

WHAT = ("marks", "drops")


def count_signals(run: Run, cells: Sequence[CellTrials], what: Sequence[str] = WHAT) -> dict[str, Array]:
    """Return the packets marked or dropped in each iteration of the first job, by trial, from begin to begin.

    Nan if unknown.

    Trials without a known counter of any port are left out.
    """
    of_jobs = iterations(run)
    counted = [{place: own for place, own in ports(run, each).items() if len(own.at_ns)} for each in what]
    found: dict[str, Array] = {}
    for cell in cells:
        for trial in cell.trials:
            own = [port for each in counted for place, port in each.items() if place.trial == trial]
            if own:
                job = next(job for job in cell.jobs if filter_rows(of_jobs, trial=trial, job=job).num_rows)
                rows = filter_rows(of_jobs, trial=trial, job=job)
                edges_ns = np.append(rows["start_ns"].to_numpy(), rows["comm_end_ns"].to_numpy()[-1:])
                gains = [port.gains_between(edges_ns) for port in own]
                found[trial] = np.sum([np.where(each.known, each.counts, np.nan) for each in gains], axis=0)
    return found


def counts_of_cell(found: Mapping[str, Array], cell: CellTrials) -> list[Array]:
    """Return the known counts of a cell's trials, an array a trial, without unknown iterations."""
    known = [found[trial][np.isfinite(found[trial])] for trial in cell.trials if trial in found]
    return [each for each in known if len(each)]
