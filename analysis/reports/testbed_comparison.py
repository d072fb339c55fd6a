# SPDX-License-Identifier: Apache-2.0
"""Comparison of testbeds: the newest run of one experiment on each of them, side by side."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from analysis.expectations.results import JobCell, Result, Testbed
from analysis.reading.cells import CellId
from analysis.render import screen
from analysis.render.tables import Cell, Column, Table, one_section
from analysis.reports.comparison import CompareError
from analysis.reports.scoreboard import is_unaltered
from analysis.reports.summary import stored_or_new
from analysis.statistics.intervals import Interval
from roundabout.core.errors import RoundaboutError
from roundabout.spec.base import Level
from roundabout.store import Run

ORDER = ("fluid", "packets", "lab", "rack")
"""Testbeds by growing fidelity; testbeds of plugins come last."""


class TestbedRun(Result):
    """The newest run of the experiment on one testbed."""

    run: str
    testbed: Testbed


class TestbedFigures(Result):
    """A job's figures on one testbed in one cell. `speedup` is over that testbed's own baseline."""

    median_ms: float
    median_ci95_ms: Interval | None
    speedup: float | None
    speedup_ci95: Interval | None


class TestbedCell(Result):
    """The figures of a job in one cell, by testbed; testbeds that did not run the cell are left out."""

    levels: dict[str, Level]
    job: str
    testbeds: dict[str, TestbedFigures]


class TestbedComparison(Result):
    """The newest run on each testbed, and every cell and job of these runs."""

    experiment: str
    runs: tuple[TestbedRun, ...]
    cells: tuple[TestbedCell, ...]

    def record(self) -> dict[str, Any]:
        """Return the comparison as JSON-compatible values."""
        return self.model_dump(mode="json")


def compare_testbeds(experiment: str, runs: Path) -> TestbedComparison:
    """Return the comparison of the newest run of `experiment` on each testbed, among the runs below `runs`.

    Runs without a valid trial, and runs with overridden fields, do not count. Raises CompareError if fewer than two
    testbeds have a run.
    """
    newest: dict[str, tuple[TestbedRun, Sequence[JobCell]]] = {}
    for run in sorted((each for each in Run.all(runs) if each.experiment == experiment), key=lambda each: each.id):
        try:
            found = stored_or_new(run) if is_unaltered(run) else None
        except RoundaboutError:  # a damaged run, which `roundabout runs` reports
            continue
        if found and found.cells:
            newest[found.testbed.kind] = (TestbedRun(run=run.id, testbed=found.testbed), found.cells)
    if len(newest) < 2:
        there = ", ".join(newest) or "none"
        raise CompareError(
            f"{runs}: found runs of {experiment} on these testbeds: {there}; expected two testbeds at least",
            f"roundabout run {experiment} --testbed fluid, or packets, or lab",
        )
    kinds = sorted(newest, key=lambda kind: (ORDER.index(kind) if kind in ORDER else len(ORDER), kind))
    figures: dict[tuple[CellId, str], dict[str, TestbedFigures]] = {}
    for kind in kinds:
        for cell in newest[kind][1]:
            own = figures.setdefault((cell.id, cell.job), {})
            own[kind] = TestbedFigures.model_validate(cell.model_dump())
    cells = (TestbedCell(levels=dict(cell.levels), job=job, testbeds=own) for (cell, job), own in figures.items())
    return TestbedComparison(experiment=experiment, runs=tuple(newest[kind][0] for kind in kinds), cells=tuple(cells))


def table(comparison: TestbedComparison) -> RenderableType:
    """Return the comparison for a screen of 100 columns: iteration times, then speed-ups over each one's baseline."""
    lines = [Text(f"{each.testbed.kind}  {each.run} ({each.testbed.fidelity.stamp})") for each in comparison.runs]

    def median(found: TestbedFigures) -> Cell:
        return Cell(found.median_ms, found.median_ci95_ms)

    def speedup(found: TestbedFigures) -> Cell:
        return Cell(found.speedup, found.speedup_ci95)

    return Group(
        *lines,
        _table(comparison, median, ".1f", "Median iteration time in ms, with 95 % intervals"),
        _table(comparison, speedup, ".2f", "Speed-up of the median over the same testbed's baseline"),
    )


def _table(
    comparison: TestbedComparison, cell: Callable[[TestbedFigures], Cell], form: str, caption: str
) -> RenderableType:
    kinds = [each.testbed.kind for each in comparison.runs]
    columns = (Column(kind="words"), Column("job", kind="words"), *(Column(kind, form) for kind in kinds))
    rows = (
        (
            Cell(CellId(each.levels).name),
            Cell(each.job),
            *(cell(each.testbeds[kind]) if kind in each.testbeds else Cell() for kind in kinds),
        )
        for each in comparison.cells
    )
    return screen.table_renderable(Table(columns, one_section(rows), caption))
