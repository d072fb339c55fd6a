# SPDX-License-Identifier: Apache-2.0
"""The table of jobs' slowdowns by variant."""

from collections.abc import Sequence

from rich.console import RenderableType

from analysis.render import screen as on_screen
from analysis.render.tables import REPETITIONS, TAIL, Cell, Column, Table, group_by_title
from analysis.studies.job_queue.study import CellSlowdowns, Results


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    return [on_screen.table_renderable(slowdown_table(results))]


def slowdown_table(results: Results) -> Table:
    """Return a table of slowdowns, moves and waiting times, in sections by the levels besides the variant."""
    columns = (
        *(Column(kind="names"), REPETITIONS, Column("jobs", ",.0f"), Column("mean", ".3f"), Column("p90", ".3f")),
        *(Column(TAIL, ".3f"), Column("worst", ".2f"), Column("moves", ".2f"), Column("queueing,\ns", "z.0f")),
    )
    sections = group_by_title(results.slowdowns, lambda each: each.group, _row)
    return Table(columns, sections, "Slowdown of jobs, with 95 % intervals", empty="no valid trial", divisible=True)


def _row(cell: CellSlowdowns) -> Sequence[Cell]:
    return (
        *(Cell(cell.name), Cell(str(cell.repetitions)), Cell(cell.jobs)),
        *(Cell(each.value, each.ci95) for each in (cell.mean, cell.p90)),
        Cell(cell.p99.value, cell.p99.ci95) if cell.p99 else Cell(),
        *(Cell(cell.worst), Cell(cell.moves), Cell(cell.queueing_mean_s.value, cell.queueing_mean_s.ci95)),
    )
