# SPDX-License-Identifier: Apache-2.0
"""The results of the study of traffic patterns: the circle of each job, and the unified circles of shared links."""

from collections.abc import Sequence

from analysis.expectations.results import Result, Summary, common_fields
from analysis.reading.cells import CellTrials, cells_of
from roundabout.models.cassini import best_rotations, circle_of
from roundabout.spec import StudyChoice
from roundabout.store import Run


class ArcResult(Result):
    """A phase of communication on a job's circle, in ms from the iteration's start, and its rate."""

    begin_ms: float
    end_ms: float
    gbps: float


class PatternResult(Result):
    """A job's iteration as it is played: its length and phases of communication; `shift_ms` where it shares a link."""

    variant: str
    job: str
    profile: str
    iteration_ms: float
    arcs: tuple[ArcResult, ...]
    score: float | None = None
    perimeter_ms: float | None = None
    rotation_deg: float | None = None
    shift_ms: float | None = None


class Results(Summary):
    """The study's own results."""

    patterns: tuple[PatternResult, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of traffic patterns shows."""
    patterns = tuple(each for cell in cells_of(run) for each in _patterns(cell))
    return Results(**common_fields(run, choice), patterns=patterns)


def _patterns(cell: CellTrials) -> Sequence[PatternResult]:
    links = best_rotations(cell.spec) if cell.spec.has_concurrent_jobs else {}
    found = next(iter(links.values()), None)
    unified = {} if found is None else {each.job: place for place, each in enumerate(found.unified.circles)}
    results = []
    for name, job in cell.spec.jobs.items():
        circle = circle_of(job.profile, name)
        shared = {}
        if found is not None and name in unified:
            shared = {
                "score": found.score,
                "perimeter_ms": found.unified.perimeter_ms,
                "rotation_deg": found.degrees[unified[name]],
                "shift_ms": found.shifts_ms[unified[name]],
            }
        arcs = tuple(ArcResult(begin_ms=each.begin_ms, end_ms=each.end_ms, gbps=each.gbps) for each in circle.arcs)
        results.append(
            PatternResult(
                variant=cell.variant,
                job=name,
                profile=job.profile.name,
                iteration_ms=circle.iteration_ms,
                arcs=arcs,
                **shared,
            )
        )
    return results
