# SPDX-License-Identifier: Apache-2.0
"""Communication over time, for quantities of jobs that share links."""

from collections.abc import Sequence

from analysis.quantities._request import CachedReading, QuantityRequest
from analysis.reading.cells import CellTrials
from analysis.reading.phase_overlap import Spans, select_jobs
from analysis.reading.traces import spans_of_cells
from analysis.statistics.cumulative_counter import Floats


def spans_of_sharing_jobs(request: QuantityRequest) -> list[tuple[CellTrials, list[Spans]]]:
    """Return the requested cells whose jobs share links, each with its trials' spans of communication by job, ms."""
    found = request.reading.cached(_courses)
    return [(cell, [found[trial] for trial in cell.trials]) for cell in request.cells if cell.sharing_jobs]


def spans_by_link(cell: CellTrials, trials: Sequence[Spans]) -> dict[str, list[Spans]]:
    """Return, by the link's name, each trial's spans of the jobs that share the link."""
    return {link: [select_jobs(spans, jobs) for spans in trials] for link, jobs in cell.sharing_jobs.items()}


def _courses(reading: CachedReading) -> dict[str, dict[str, Floats]]:
    return spans_of_cells(reading.run, reading.cells)
