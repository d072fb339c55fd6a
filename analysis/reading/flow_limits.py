# SPDX-License-Identifier: Apache-2.0
"""The flow-level limits of a run's cells (roundabout/models/fluid/limits.py)."""

import math
from dataclasses import replace

from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellId, CellTrials, cells_of
from analysis.reading.fidelity import read_fidelity
from roundabout.models.fluid import Limits, fluid_limits
from roundabout.store import Run

UNKNOWN = Limits(math.nan, math.nan, math.nan)


@cached_per_run
def limits_of_cells(run: Run) -> dict[CellId, dict[str, Limits]]:
    """Return the limits of every job of each measured cell. Those of many flows take a second a cell.

    A job whose trainer does not play its profile has none, unless a model played it. A job beside such a job has only
    that of the job alone.
    """
    is_computed = read_fidelity(run.manifest["testbed"]).nature == "computed"
    return {cell.id: fluid_limits(cell.spec) if is_computed else _measured_limits(cell) for cell in cells_of(run)}


def _measured_limits(cell: CellTrials) -> dict[str, Limits]:
    limits, jobs = fluid_limits(cell.spec), cell.spec.jobs
    if all(job.trainer.plays_profile for job in jobs.values()):
        return limits
    return {
        name: replace(UNKNOWN, alone_ms=limits[name].alone_ms) if job.trainer.plays_profile else UNKNOWN
        for name, job in jobs.items()
    }
