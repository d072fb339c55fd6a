# SPDX-License-Identifier: Apache-2.0
"""Communication over time, for quantities of jobs that share links."""

from analysis.quantities._request import CachedReading, QuantityRequest
from analysis.reading.cells import CellTrials
from analysis.reading.phase_overlap import Spans
from analysis.reading.traces import spans_of_cells
from analysis.statistics.cumulative_counter import Floats


def spans_of_sharing_jobs(asked: QuantityRequest) -> list[tuple[CellTrials, list[Spans]]]:
    """Return the requested cells whose jobs share links, each with its trials' spans of communication by job, ms."""
    found = asked.reading.cached(_courses)
    cells = [cell for cell in asked.cells if not cell.spec.one_job_at_a_time and len(cell.times) > 1]
    return [(cell, [found[trial] for trial in cell.trials]) for cell in cells]


def _courses(reading: CachedReading) -> dict[str, dict[str, Floats]]:
    return spans_of_cells(reading.run, reading.cells)
