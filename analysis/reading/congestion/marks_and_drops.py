# SPDX-License-Identifier: Apache-2.0
"""Marks or drops of all switch ports together, by iteration, of any job's packets."""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.reading.cells import CellTrials
from analysis.reading.data import filter_rows, iterations, ports
from analysis.statistics.intervals import Array
from roundabout.store import Run

WHAT = ("marks", "drops")


def count_signals(run: Run, cells: Sequence[CellTrials], what: Sequence[str] = WHAT) -> dict[str, Array]:
    """Return by trial the packets that all ports marked or dropped in each iteration of the first job; nan if unknown.

    An iteration lasts from its begin to the begin of the next one.

    Trials without any port's counters are left out.
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
    """Return the counts of a cell's trials, one array for each trial, without unknown iterations and empty trials."""
    known = [found[trial][np.isfinite(found[trial])] for trial in cell.trials if trial in found]
    return [each for each in known if len(each)]
