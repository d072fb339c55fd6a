# SPDX-License-Identifier: Apache-2.0
"""The flow-level limits of a run's cells (roundabout/models/fluid/limits.py)."""

from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellId, cells_of
from roundabout.models.fluid import Limits, fluid_limits
from roundabout.store import Run


@cached_per_run
def limits_of_cells(run: Run) -> dict[CellId, dict[str, Limits]]:
    """Return the limits of every job of each measured cell. Those of many flows take a second a cell."""
    return {cell.id: fluid_limits(cell.spec) for cell in cells_of(run)}
