# SPDX-License-Identifier: Apache-2.0
"""The results of the study of jobs that share a link: iteration times by variant, and the jobs' overlap."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from analysis.expectations.results import Result, Summary, common_fields
from analysis.reading.cells import CellId, CellTrials, cells_of
from analysis.reading.phase_overlap import select_jobs
from analysis.reading.traces import communication_spans, shared_share
from analysis.statistics.cumulative_counter import Floats
from roundabout.spec import StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run


class Overlap(Result):
    """The share of a link's sending time in which several of its jobs sent, averaged over a cell's repetitions.

    `link` is empty if the cell's jobs share one link only. `first` is over the first iteration, `last_half` over the
    second half of all.
    """

    variant: str
    levels: dict[str, Level]
    link: str = ""
    first: float
    last_half: float

    @property
    def name(self) -> str:
        """Return the name of the cell, and of the link if there are several, in texts."""
        return " \u00b7 ".join(filter(None, (CellId(self.levels).name, self.link)))


class Results(Summary):
    """The study's own results."""

    overlaps: tuple[Overlap, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of jobs that share a link shows."""
    return Results(
        **common_fields(run, choice),
        overlaps=tuple(each for cell in sharing_cells(cells_of(run)) for each in _overlaps(run, cell)),
    )


def sharing_cells(cells: Sequence[CellTrials]) -> list[CellTrials]:
    """Return the cells whose jobs ran at the same time."""
    return [cell for cell in cells if not cell.spec.one_job_at_a_time]


def _overlaps(run: Run, cell: CellTrials) -> Iterator[Overlap]:
    """Yield the overlap on each link that jobs of the cell share."""
    spans = [communication_spans(run, cell, trial)[1] for trial in cell.trials]
    for link, jobs in cell.sharing_jobs.items():
        shares = [_shares(select_jobs(each, jobs)) for each in spans]
        first, last_half = (fmean(each) for each in zip(*shares, strict=True))
        name = link if len(cell.sharing_jobs) > 1 else ""
        yield Overlap(variant=cell.variant, levels=dict(cell.levels), link=name, first=first, last_half=last_half)


def _shares(spans: Mapping[str, Floats]) -> tuple[float, float]:
    """Return the shares in the first iteration, and over the last half, of one trial."""
    middle = max(each[len(each) // 2, 0] for each in spans.values())
    return (
        shared_share(spans, 0.0, max(each[0, 1] for each in spans.values())),
        shared_share(spans, middle, min(each[-1, 1] for each in spans.values())),
    )
