# SPDX-License-Identifier: Apache-2.0
"""The table of iteration times by level."""

from collections.abc import Sequence

from rich.console import RenderableType

from analysis.expectations.results import JobCell
from analysis.reading.disturbance import describe_effect
from analysis.render import screen as on_screen
from analysis.render.tables import (
    REPETITIONS,
    TAIL,
    Cell,
    Column,
    Section,
    Table,
    describe_modes,
    repetitions_cell,
    tail_cell,
    typical_cell,
)
from analysis.studies.levels.study import LevelLine, Results
from roundabout.core.milliseconds import format_ms


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    return [on_screen.table_renderable(time_table(results))]


def time_table(results: Results) -> Table:
    """Return a table of iteration times by level, with the best level marked, in sections by job and other levels.

    Other levels stand above the first of their sections.
    """
    columns = (
        *(Column("job", kind="words"), Column(results.factor.rpartition(".")[2], kind="words"), REPETITIONS),
        *(Column("median", format_ms), Column("mean", format_ms, only="page"), Column(TAIL, format_ms)),
        *([Column(f"speed-up\nover {results.study.baseline}", ".2f")] if _has_speedups(results) else []),
        Column("fluid \u200blimit", format_ms),
        Column("median is", kind="words"),
    )
    before = ("", *(line.name for line in results.lines))
    sections = tuple(
        _section(line, results.factor, "" if line.name == above else line.name, with_speedup=_has_speedups(results))
        for above, line in zip(before, results.lines, strict=False)
    )
    caption = describe_modes(cell.modes_ms for line in results.lines for cell in line.cells)
    return Table(columns, sections, "Iteration time in ms, with 95 % intervals", caption, "no valid trial")


def _section(line: LevelLine, factor: str, title: str, *, with_speedup: bool) -> Section:
    rows = (
        (
            Cell(line.job if place == 0 else ""),
            Cell(
                str(cell.levels.get(factor, "")),
                note="" if cell.disturbance is None else describe_effect(cell.disturbance),
            ),
            repetitions_cell(cell.repetitions, cell.invalid),
            *_figures(cell, with_speedup=with_speedup),
            _mark(line, cell, factor),
        )
        for place, cell in enumerate(line.cells)
    )
    return Section(tuple(rows), title)


def _has_speedups(results: Results) -> bool:
    return any(cell.speedup is not None for cell in results.cells)


def _figures(cell: JobCell, *, with_speedup: bool) -> Sequence[Cell]:
    return (
        typical_cell(cell.typical_ms, cell.typical_ci95_ms, cell.modes_ms),
        Cell(cell.mean_ms, cell.mean_ci95_ms),
        tail_cell(cell.p99_ms, cell.p99_ci95_ms, cell.max_ms, cell.count),
        *([Cell(cell.speedup, cell.speedup_ci95)] if with_speedup else []),
        Cell("none") if cell.limit_ms is None else Cell(cell.limit_ms, note=cell.limit),
    )


def _mark(line: LevelLine, cell: JobCell, factor: str) -> Cell:
    return Cell("least" if len(line.cells) > 1 and cell.levels.get(factor) == line.best else "")
