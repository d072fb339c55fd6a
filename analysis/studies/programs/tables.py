# SPDX-License-Identifier: Apache-2.0
"""The tables of programs and the jobs beside them: iteration times and bandwidths, over the baseline's, too."""

from collections.abc import Sequence

from rich.console import RenderableType

from analysis.expectations.results import CellFigure, JobCell
from analysis.render import screen as on_screen
from analysis.render.tables import (
    REPETITIONS,
    TAIL,
    Cell,
    Column,
    Table,
    describe_modes,
    group_by_title,
    repetitions_cell,
    tail_cell,
    typical_cell,
)
from analysis.studies.programs.study import Bandwidth, Results
from roundabout.core.milliseconds import format_ms


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    return [on_screen.table_renderable(each) for each in (time_table(results), bandwidth_table(results))]


def time_table(results: Results) -> Table:
    """Return a table of iteration times, in sections by job."""
    columns = (
        *(Column(kind="names"), REPETITIONS, Column("median", format_ms), Column("mean", format_ms, only="page")),
        Column(TAIL, format_ms),
        Column(f"speed-up\nover {results.study.baseline}", ".2f"),
    )
    sections = group_by_title(sorted(results.cells, key=_job), _job, _times)
    caption = describe_modes(cell.modes_ms for cell in results.cells)
    return Table(columns, sections, "Iteration time in ms, with 95 % intervals", caption, "no valid trial")


def bandwidth_table(results: Results) -> Table:
    """Return a table of the bandwidths that programs report and that hosts count, in sections by job."""
    columns = (
        *(Column(kind="names"), Column("bus bandwidth\nas reported", ".2f")),
        Column(f"over {results.study.baseline}'s", ".3f"),
        Column("sent by the\nhosts' counters", ".2f"),
    )
    names = {(cell.id, cell.job): cell.name for cell in results.cells}
    sections = group_by_title(
        sorted(results.bandwidths, key=_job), _job, lambda each: (Cell(names[each.id, each.job]), *_bandwidths(each))
    )
    return Table(columns, sections, "Bandwidth in Gbit/s, with 95 % intervals", empty="no valid trial")


def _job(each: JobCell | Bandwidth) -> str:
    return each.job


def _times(cell: JobCell) -> Sequence[Cell]:
    return (
        Cell(cell.name),
        repetitions_cell(cell.repetitions, cell.invalid),
        typical_cell(cell.typical_ms, cell.typical_ci95_ms, cell.modes_ms),
        Cell(cell.mean_ms, cell.mean_ci95_ms),
        tail_cell(cell.p99_ms, cell.p99_ci95_ms, cell.max_ms, cell.count),
        Cell(cell.speedup, cell.speedup_ci95),
    )


def _bandwidths(each: Bandwidth) -> Sequence[Cell]:
    return _cell(each.bus_gbps, "not reported"), _cell(each.gain), _cell(each.sent_gbps, "not counted")


def _cell(figure: CellFigure | None, missing: str | None = None) -> Cell:
    return Cell(figure.value, figure.ci95) if figure else Cell(missing)
