# SPDX-License-Identifier: Apache-2.0
"""Comparison of runs by their common variants, levels and jobs: the speed-up of each other run over the first."""

from collections.abc import Iterator, Sequence
from string import ascii_uppercase
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from analysis.expectations.results import JobCell, Result, Summary, Testbed
from analysis.reading.cells import CellId, CellTrials, cells_of
from analysis.reading.disturbance import MARK
from analysis.reading.speedups import speedup
from analysis.render import screen
from analysis.render.tables import Cell, Column, Table, one_section
from analysis.reports.summary import stored_or_new, summarize_run
from analysis.statistics.intervals import Interval
from roundabout.core.errors import RoundaboutError
from roundabout.core.milliseconds import format_ms
from roundabout.spec.base import Level
from roundabout.store import Run


class CompareError(RoundaboutError):
    """The runs cannot be compared."""


class ComparedRun(Result):
    """One run of a comparison."""

    experiment: str
    run: str
    testbed: Testbed


class RunSide(Result):
    """The figures of a job in one cell of one of the runs.

    `disturbance` is the estimated effect on disturbed trials, as a share; None for valid ones.
    """

    repetitions: int
    iterations: int
    median_ms: float
    median_ci95_ms: Interval | None
    disturbance: float | None = None


class ComparedCell(Result):
    """The figures of a job in one cell of the first run A and of another run, and the other run's speed-up over A."""

    run: str
    variant: str
    levels: dict[str, Level]
    job: str
    a: RunSide
    b: RunSide
    speedup: float
    speedup_ci95: Interval | None


class Comparison(Result):
    """The compared runs, the first run A first, and every cell that A shares with another run."""

    runs: tuple[ComparedRun, ...]
    cells: tuple[ComparedCell, ...]

    def record(self) -> dict[str, Any]:
        """Return the comparison as JSON-compatible values."""
        return self.model_dump(mode="json")


def compare(one: Run, *others: Run, mixed: bool = False) -> Comparison:
    """Return the comparison of every cell that run `one` shares with another run.

    It has each job's median iteration time in both runs, and the speed-up over `one` with its interval.

    Raises CompareError if runs share no cell, and, unless `mixed`, if their natures differ (one is real and another is
    not).
    """
    a, cells = _summary_of(one), list[ComparedCell]()
    summaries = [a]
    for other in others:
        b = _summary_of(other)
        natures = [each.testbed.fidelity.nature for each in (a, b)]
        if natures[0] != natures[1] and not mixed:
            raise CompareError(
                f"{one.id} is {natures[0]} and {other.id} is {natures[1]}",
                f"what was {natures[0]} is not what was {natures[1]}; say --mixed to compare them all the same",
            )
        cells += _compare_cells(one, other, a.cells, b.cells)
        summaries.append(b)
    return Comparison(runs=tuple(map(_run, summaries)), cells=tuple(cells))


def _summary_of(run: Run) -> Summary:
    """Return the stored summary, or a new one where that lacks a cell: the run may have gone on since."""
    found = stored_or_new(run)
    known = {(cell.id, cell.job) for cell in found.cells}
    measured = {(cell.id, job) for cell in cells_of(run) for job in cell.times}
    return found if measured <= known else summarize_run(run)


def pairs(one: Run, other: Run) -> Iterator[tuple[CellTrials, CellTrials, str]]:
    """Yield the cell in `one`, the cell in `other` and the job, for all that both have.

    Raises CompareError for none.
    """
    there = {(cell.id, cell.variant): cell for cell in cells_of(other)}
    found = [
        (cell, twin, job)
        for cell in cells_of(one)
        if (twin := there.get((cell.id, cell.variant)))
        for job in cell.times
        if job in twin.times
    ]
    if not found:
        for run in (one, other):
            if not cells_of(run):
                raise CompareError(f"{run.path} has no valid trial", f"why: roundabout status {run.path}")
        raise CompareError(
            f"{one.id} and {other.id} have no variant, levels and job in common",
            "compare runs of one experiment, or of experiments that share variants",
        )
    yield from found


def table(comparison: Comparison) -> RenderableType:
    """Return a comparison for a screen of 100 columns."""
    named = [(_run_letter(place), run) for place, run in enumerate(comparison.runs)]
    lines = [Text(f"{name}  {run.experiment} {run.run} ({run.testbed.fidelity.stamp})") for name, run in named]
    natures = list(dict.fromkeys(run.testbed.fidelity.nature for run in comparison.runs))
    if len(natures) > 1:
        differ = "their figures differ in more than the runs"
        lines.append(Text(f"one of them was {natures[0]}, the other was {natures[1]}: {differ}", "yellow"))
    return Group(*lines, *(_compare_table(name, run, comparison) for name, run in named[1:]))


def _compare_table(name: str, run: ComparedRun, comparison: Comparison) -> RenderableType:
    """Return the comparison of A and one other."""
    columns = (
        *(Column(kind="words"), Column("job", kind="words")),
        *(Column("A", format_ms), Column(name, format_ms), Column(f"speed-up\nof {name} over A", ".3f")),
        Column(kind="words"),
    )
    rows = (_row(each, name) for each in comparison.cells if each.run == run.run)
    return screen.table_renderable(
        Table(columns, one_section(rows), "Median iteration time in ms, with 95 % intervals")
    )


def _run_letter(place: int) -> str:
    """Return A to Z, then A1."""
    return ascii_uppercase[place % 26] + (str(place // 26) if place > 25 else "")


def _compare_cells(one: Run, other: Run, a: Sequence[JobCell], b: Sequence[JobCell]) -> Iterator[ComparedCell]:
    sides = [{(cell.id, cell.job): RunSide.model_validate(cell.model_dump()) for cell in cells} for cells in (a, b)]
    for cell, twin, job in pairs(one, other):
        if effect := speedup(cell, twin, job):
            yield ComparedCell(
                run=other.id,
                variant=cell.variant,
                levels=dict(cell.levels),
                job=job,
                a=sides[0][cell.id, job],
                b=sides[1][cell.id, job],
                speedup=effect[0],
                speedup_ci95=effect[1],
            )


def _run(summary: Summary) -> ComparedRun:
    return ComparedRun(experiment=summary.experiment, run=summary.run, testbed=summary.testbed)


def _row(cell: ComparedCell, name: str) -> Sequence[Cell]:
    return (
        Cell(CellId(cell.levels).name),
        Cell(cell.job),
        Cell(cell.a.median_ms, cell.a.median_ci95_ms),
        Cell(cell.b.median_ms, cell.b.median_ci95_ms),
        Cell(cell.speedup, cell.speedup_ci95),
        _disturbed_cell(cell, name) or _interval_cell(cell.speedup_ci95, name),
    )


def _disturbed_cell(cell: ComparedCell, name: str) -> Cell | None:
    """Return a cell with the mark and the runs whose trials were disturbed; None for quiet ones."""
    sides = [side for side, own in (("A", cell.a), (name, cell.b)) if own.disturbance is not None]
    return Cell(f"{' and '.join(sides)} {MARK}") if sides else None


def _interval_cell(interval: Interval | None, name: str) -> Cell:
    if interval is None:
        return Cell(note="not measured")
    if interval[0] > 1:
        return Cell(f"{name} is quicker")
    return Cell("A is quicker") if interval[1] < 1 else Cell(note="no difference shown")
