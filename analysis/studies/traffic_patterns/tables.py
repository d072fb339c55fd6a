# SPDX-License-Identifier: Apache-2.0
"""The table of traffic patterns."""

from collections.abc import Sequence

from rich.console import RenderableType

from analysis.render import screen as on_screen
from analysis.render.tables import Cell, Column, Table, one_section
from analysis.studies.traffic_patterns.study import PatternResult, Results
from roundabout.core.milliseconds import format_ms


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    return [on_screen.table_renderable(pattern_table(results))]


def pattern_table(results: Results) -> Table:
    """Return a table with a row for each job: its iteration, its phases of communication, and its rotation."""
    columns = (
        Column("variant", kind="words"),
        Column("job", kind="words"),
        Column("iteration,\nms", format_ms),
        Column("computing,\ndegrees", ".1f"),
        Column("phases,\nGbit/s", kind="words", wraps=True),
        Column("rotation,\ndegrees", ".1f"),
        Column("score", ".3f"),
    )
    rows = (
        (
            Cell(each.variant),
            Cell(each.job),
            Cell(each.iteration_ms),
            Cell(computing_deg(each)),
            Cell(", ".join(f"{arc.gbps:.0f}" for arc in each.arcs)),
            Cell(each.rotation_deg),
            Cell(each.score),
        )
        for each in results.patterns
    )
    return Table(columns, one_section(rows), "Circles of the jobs, as they are played", empty="no valid trial")


def computing_deg(pattern: PatternResult) -> float:
    """Return the part of a job's circle on which it sends nothing, degrees."""
    return 360 * (1 - sum(arc.end_ms - arc.begin_ms for arc in pattern.arcs) / pattern.iteration_ms)
