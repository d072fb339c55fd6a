# SPDX-License-Identifier: Apache-2.0
"""The results of the study of jobs that share a link: iteration times by variant, and the jobs' overlap."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from analysis.expectations.results import Result, Summary, common_fields
from analysis.reading.cells import CellId, CellTrials, cells_of
from analysis.reading.traces import communication_spans, shared_share
from analysis.statistics.cumulative_counter import Floats
from roundabout.spec import StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run


class Overlap(Result):
    """The share of sending time in which several jobs sent, averaged over a cell's repetitions.

    `first` is over the first iteration, `last_half` over the second half of all.
    """

    variant: str
    levels: dict[str, Level]
    first: float
    last_half: float

    @property
    def name(self) -> str:
        """Return the cell's name in texts."""
        return CellId(self.levels).name


class Results(Summary):
    """The study's own results."""

    overlaps: tuple[Overlap, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of jobs that share a link shows."""
    return Results(
        **common_fields(run, choice), overlaps=tuple(_overlap(run, cell) for cell in sharing_cells(cells_of(run)))
    )


def sharing_cells(cells: Sequence[CellTrials]) -> list[CellTrials]:
    """Return the cells whose jobs ran at the same time."""
    return [cell for cell in cells if not cell.spec.one_job_at_a_time]


def _overlap(run: Run, cell: CellTrials) -> Overlap:
    shares = [_shares(communication_spans(run, cell, trial)[1]) for trial in cell.trials]
    first, last_half = (fmean(each) for each in zip(*shares, strict=True))
    return Overlap(variant=cell.variant, levels=dict(cell.levels), first=first, last_half=last_half)


def _shares(spans: Mapping[str, Floats]) -> tuple[float, float]:
    """Return the shares in the first iteration, and over the last half, of one trial."""
    middle = max(each[len(each) // 2, 0] for each in spans.values())
    return (
        shared_share(spans, 0.0, max(each[0, 1] for each in spans.values())),
        shared_share(spans, middle, min(each[-1, 1] for each in spans.values())),
    )
