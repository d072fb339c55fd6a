# SPDX-License-Identifier: Apache-2.0
"""The part of a page about cables between switches, where a topology has several paths."""

from collections.abc import Sequence

from analysis.reading.cells import CellTrials
from analysis.reading.congestion.cable_use import CableUse, cable_uses
from analysis.render.page import Html, bold_heading, paragraph, table_html
from analysis.render.tables import Cell, Column, Table, group_by_name
from roundabout.store import Run

SHOWN = 40  # busiest cables of a variant; a fat tree has thousands
ABOUT = (
    "Each direction that a planned route crosses, busiest first, while jobs ran: its rate with headers, as a share of "
    "the line rate, the queue in front of it, mean and most, and packets that were marked. Means over repetitions."
)
COLUMNS = (
    Column(kind="names"),
    Column("cable", kind="words"),
    Column("towards", kind="words"),
    Column("jobs", kind="words"),
    Column("Gbit/s"),
    Column("of its rate", ".0%"),
    Column("queue,\nkB"),
    Column("longest\nqueue, kB"),
    Column("marks", ",.0f"),
)


def cables_of(run: Run, cells: Sequence[CellTrials]) -> Html:
    """Return a table of the cables between switches, with a heading; nothing for trees."""
    uses = cable_uses(run, cells)
    if not uses:
        return Html("")
    shown = [use for cell in cells for use in _busiest(uses, cell)]
    table = Table(COLUMNS, group_by_name(shown, lambda use: use.cell.name, _row))
    return Html("").join((bold_heading("Cables between switches"), paragraph(ABOUT), table_html(table)))


def _busiest(uses: Sequence[CableUse], cell: CellTrials) -> list[CableUse]:
    own = [use for use in uses if use.cell is cell]
    return sorted(own, key=lambda use: -use.gbps / use.line_rate_gbps)[:SHOWN]


def _row(use: CableUse) -> Sequence[Cell]:
    figures = (use.gbps, use.gbps / use.line_rate_gbps, use.backlog_kb, use.most_backlog_kb, use.marks)
    return (Cell(use.cable), Cell(use.towards), Cell(", ".join(use.jobs)), *map(Cell, figures))
