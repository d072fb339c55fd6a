# SPDX-License-Identifier: Apache-2.0
"""The table of recoveries from links' events."""

from collections.abc import Sequence

from rich.console import RenderableType

from analysis.reading.recoveries import LASTING, TOLERANCE
from analysis.render import screen as on_screen
from analysis.render.tables import Cell, Column, Section, Table
from analysis.studies.link_events.study import RecoveryResult, Results
from roundabout.core.milliseconds import format_ms


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    return [on_screen.table_renderable(recovery_table(results))]


def recovery_table(results: Results) -> Table:
    """Return a table with a row for each job and event, in sections by cell."""
    columns = (
        Column("job", kind="words"),
        Column("event", kind="words", wraps=True),
        Column("iteration\nbefore, ms", format_ms),
        Column("recovery\ntime, ms", ".0f"),
        Column("lost\niterations", ".2f"),
        Column("packets that\nthe link lost", ".0f"),
    )
    names = dict.fromkeys(each.name for each in results.recoveries)
    sections = tuple(
        Section(tuple(_row(each) for each in results.recoveries if each.name == name), name) for name in names
    )
    caption = (
        f"Recovered: {LASTING} iterations running no more than {TOLERANCE:.0%} longer than the median before the first "
        "event. Packets are those of whole trials, in both directions."
    )
    return Table(columns, sections, "Recovery from events, with 95 % intervals", caption, "no valid trial with events")


def _row(found: RecoveryResult) -> tuple[Cell, ...]:
    recovery = Cell("never") if found.recovery_ms is None else Cell(found.recovery_ms, found.recovery_ci95_ms)
    packets = Cell("not measured") if found.lost_packets is None else Cell(found.lost_packets)
    return (
        Cell(found.job),
        Cell(found.event),
        Cell(found.usual_ms),
        recovery,
        Cell(found.lost_iterations, found.lost_iterations_ci95),
        packets,
    )
