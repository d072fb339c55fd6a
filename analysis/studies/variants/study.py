# SPDX-License-Identifier: Apache-2.0
"""The results of the study of variants: speed-ups by variant and job, flow-level limits, and how jobs interleave.

The study compares the levels of one factor: the variant, or the factor that the experiment's study names (`over`).
"""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from analysis.expectations.results import Result, Summary, common_fields, finite_or_none
from analysis.quantities import CachedReading, Case, QuantityRequest, find_quantity
from analysis.quantities._timelines import spans_of_sharing_jobs
from analysis.quantities.time_shifts import timetable_figures
from analysis.reading.cells import CellId, CellTrials, cells_of, experiment_of
from analysis.reading.congestion.marks_and_drops import WHAT, count_signals, counts_of_cell
from analysis.reading.disturbance import mark_name
from analysis.reading.flow_limits import limits_of_cells
from analysis.reading.phase_overlap import Spans, simulate_from_spans
from analysis.reading.speedups import baseline_of, speedup_of_mean, speedup_of_tail
from analysis.reading.traces import spans_of_cells
from analysis.statistics.intervals import Interval, Measured, mean_of
from roundabout.models.cassini import lowest_score
from roundabout.models.fluid import Limits
from roundabout.spec import StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run

FIGURES = ("slowest", "adjustments", "drift", *WHAT)
"""Figures of jobs that share links, besides the iteration from which they interleave."""
ALONE = "alone"
"""Name of the variant in which each job has the links to itself."""


class CellPlace(Result):
    """A cell within a group of cells that differ only in the level of the compared factor.

    `disturbance` is the estimated effect of disturbed trials on its figures, as a share; None for valid ones.
    """

    levels: dict[str, Level]
    over: str
    disturbance: float | None = None

    @property
    def name(self) -> str:
        """Return the cell's level of the compared factor, with a mark if its trials were disturbed."""
        return mark_name(str(self.levels.get(self.over, CellId(self.levels).variant)), self.disturbance)

    @property
    def group(self) -> str:
        """Return the levels of the other factors, as text for headings."""
        others = CellId(self.levels).without_factor(self.over).levels
        reported = ((name.rpartition(".")[2], level) for name, level in others.items())
        return " · ".join(str(level) if name == "variant" else f"{name} {level}" for name, level in reported)


class Gain(CellPlace):
    """The speed-ups of one job in one cell over the same job in the baseline cell.

    `tail_of` names the ratio `tail` if there are too few iterations for 99th percentiles. `possible` and `at_most` come
    from the flow-level model. They compare the baseline, started as its first trial was and equally long, with the best
    interleaving found and with the job alone. Interleaved jobs share fairly, and may wait before each iteration so that
    their periods have a common multiple; a job may gain more if others lose more. `score` is the compatibility score of
    time-shifted jobs, None for others.
    """

    job: str
    mean: float
    mean_ci95: Interval | None
    tail: float
    tail_ci95: Interval | None
    tail_of: str
    possible: float | None
    at_most: float | None
    score: float | None = None


class Interleaving(CellPlace):
    """How soon the jobs of one cell that share links interleave, and the remaining marks and drops.

    `interleaved` is the iteration from which jobs stay interleaved, None if they never do; `told` is the same as text.
    `slowest` is the largest ratio of a job's mean iteration time to that alone. `adjustments` is the number per minute
    of the job that is delayed most often, and `drift` the largest drift from a timetable, ms a minute. Marks and drops
    are those of all ports per iteration of the first job.
    """

    interleaved: float | None
    interleaved_ci95: Interval | None
    told: str
    slowest: float | None
    slowest_ci95: Interval | None
    adjustments: float | None
    adjustments_ci95: Interval | None
    drift: float | None
    drift_ci95: Interval | None
    marks: float | None
    marks_ci95: Interval | None
    drops: float | None
    drops_ci95: Interval | None


class Results(Summary):
    """The study's own results."""

    over: str
    gains: tuple[Gain, ...]
    meetings: tuple[Interleaving, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of compared variants shows."""
    over = choice.over or "variant"
    cells = [cell for _, some in groups(cells_of(run), over) for cell in some]
    base = experiment_of(run).baseline
    based = [(cell, baseline_of(cells, cell, base.level, base.factor)) for cell in cells]
    sent, limits = spans_of_cells(run, cells), limits_of_cells(run)
    return Results(
        **common_fields(run, choice),
        over=over,
        gains=tuple(gain for cell, base in based for gain in _gains(cell, base, over, sent, limits)),
        meetings=_meetings(run, cells, over),
    )


def cell_place(cell: CellTrials, over: str) -> CellPlace:
    """Return the cell's levels with the compared factor `over`, for tables and figures."""
    return CellPlace(levels=dict(cell.levels), over=over, disturbance=cell.disturbance)


def groups(cells: Sequence[CellTrials], over: str) -> list[tuple[str, list[CellTrials]]]:
    """Return groups of cells that differ only in `over`, each with its heading, in the experiment's order."""

    def group(cell: CellTrials) -> str:
        return cell_place(cell, over).group

    order = list(dict.fromkeys(map(group, cells)))
    together = groupby(sorted(cells, key=lambda cell: order.index(group(cell))), group)
    return [(name, list(some)) for name, some in together]


def _gains(
    cell: CellTrials,
    base: CellTrials | None,
    over: str,
    sent: Mapping[str, Spans],
    limits: Mapping[CellId, Mapping[str, Limits]],
) -> list[Gain]:
    if base is None or base is cell:
        return []
    possible, found = _possible_gains(base, sent, limits[base.id]), []
    compatible = lowest_score(cell.spec) if cell.spec.cassini else None
    disturbed = [each for each in (cell, base) if each.disturbance is not None]
    for job in cell.jobs:
        if job in base.times:
            mean, (tail, tail_of) = speedup_of_mean(base, cell, job), speedup_of_tail(base, cell, job)
            own = {"levels": dict(cell.levels), "over": over, "job": job, "tail_of": tail_of, "score": compatible}
            own["disturbance"] = max((each.disturbance or 0.0 for each in disturbed), default=None)
            found.append(Gain(**own, **_figures("mean", mean), **_figures("tail", tail), **possible[job]))
    return found


def _possible_gains(
    base: CellTrials, sent: Mapping[str, Spans], limits: Mapping[str, Limits]
) -> dict[str, dict[str, float | None]]:
    """Return the possible gain by job, over the measured duration, because even fair shares may come apart later."""
    spans = sent.get(base.trials[0])
    played = simulate_from_spans(base.spec, spans) if spans else None
    fair_ms = {job: limits[job].fair_ms for job in base.jobs} | {
        job: float(times.mean())
        for job, times in (played[1] if played else {}).items()
        if not math.isnan(limits[job].fair_ms)  # beside a job that does not play its profile
    }
    return {
        job: {
            "possible": finite_or_none(fair_ms[job] / limits[job].interleaved_ms),
            "at_most": finite_or_none(fair_ms[job] / limits[job].alone_ms),
        }
        for job in base.jobs
    }


def _meetings(run: Run, cells: Sequence[CellTrials], over: str) -> tuple[Interleaving, ...]:
    reading = CachedReading(run)
    requested = QuantityRequest(reading)
    cases = cast("Sequence[Case]", find_quantity("iteration from which jobs stay interleaved").measure(requested))
    lasting = {cell.id: case for (cell, _), case in zip(spans_of_sharing_jobs(requested), cases, strict=True)}
    counted = {what: count_signals(run, cells, [what]) for what in WHAT}
    found = []
    for cell in cells:
        if cell.spec.one_job_at_a_time:
            continue
        lost = {what: counts_of_cell(known, cell) for what, known in counted.items()}
        means = {what: mean_of([float(each.mean()) for each in own], at_least=0) for what, own in lost.items() if own}
        figures = (
            {"slowest": _largest_slowdown(cell, baseline_of(cells, cell, ALONE))}
            | timetable_figures(reading, cell)
            | means
        )
        found.append(
            Interleaving(
                levels=dict(cell.levels),
                over=over,
                disturbance=cell.disturbance,
                **_interleaved(lasting.get(cell.id)),
                **{key: each for name in FIGURES for key, each in _figures(name, figures.get(name)).items()},
            )
        )
    return tuple(found)


def _interleaved(case: Case | None) -> dict[str, Any]:
    if case is None:
        return {"interleaved": None, "interleaved_ci95": None, "told": "no shared link"}
    sure = case.ci95 if case.ci95 and math.isfinite(case.value) else None
    reported = "" if math.isfinite(case.value) else case.properties["never"]
    return {"interleaved": finite_or_none(case.value), "interleaved_ci95": sure, "told": reported}


def _largest_slowdown(cell: CellTrials, alone: CellTrials | None) -> Measured | None:
    """Return the reverse of a speed-up over alone."""
    found = [speedup_of_mean(cell, alone, job) for job in cell.jobs if alone and job in alone.times]
    return max(found, key=lambda each: each[0], default=None)


def _figures(name: str, measured: Measured | None) -> dict[str, Any]:
    value, ci95 = measured or (None, None)
    return {name: value, f"{name}_ci95": ci95}
