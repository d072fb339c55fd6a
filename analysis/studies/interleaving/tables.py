# SPDX-License-Identifier: Apache-2.0
"""The tables of jobs that share a link: iteration times and ECN marks, by variant and job."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rich.console import RenderableType

from analysis.expectations.results import JobCell, Statistics
from analysis.reading.cells import by_group
from analysis.render import screen as on_screen
from analysis.render.tables import (
    REPETITIONS,
    TAIL,
    Cell,
    Column,
    Section,
    Table,
    describe_modes,
    group_by_name,
    repetitions_cell,
    tail_cell,
    typical_cell,
)
from analysis.studies.interleaving.study import Results
from roundabout.core.milliseconds import format_ms

ALWAYS = 0.999
"""Share of sending time from which jobs send at once always; the rest is rounding."""
PLACE = (Column(kind="names"), Column("job", kind="words"))


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal: iteration times, and ECN marks if they are known."""
    marked = mark_table(results.cells)
    return [on_screen.table_renderable(each) for each in (time_table(results), *([marked] if marked.sections else []))]


def has_speedups(results: Results) -> bool:
    """Return True if the baseline of speed-ups was measured beside another cell."""
    return any(cell.speedup is not None for cell in results.cells)


def time_table(results: Results) -> Table:
    """Return a table of iteration times by variant and job, with the flow-level limits."""
    columns = (
        *PLACE,
        REPETITIONS,
        Column("median", format_ms),
        Column("mean", format_ms, only="page"),
        Column(TAIL, format_ms),
        Column("last half,\nmedian", format_ms),
        *([Column(f"speed-up\nover {results.study.baseline}", ".2f")] if has_speedups(results) else []),
        Column("fluid \u200blimit", format_ms),
        Column("off the limit", "+.1%", only="page"),
    )
    cells = results.cells
    captions = [
        describe_modes(each.modes_ms for cell in cells for each in (cell, cell.last_half)),
        describe_symmetry(results),
    ]
    if all(cell.median_ci95_ms is None for cell in cells):
        captions.append("intervals not measured: fewer than 4 repetitions")
    caption = "; ".join(filter(None, captions))
    sections = _sections(cells, partial(_times, with_speedup=has_speedups(results)))
    return Table(columns, sections, "Iteration time in ms, with 95 % intervals", caption, "no valid trial")


def mark_table(cells: Sequence[JobCell]) -> Table:
    """Return a table of ECN marks per iteration by variant and job, with error bounds and unattributed shares."""
    columns = (
        *PLACE,
        *(Column(name, ".0f") for name in ("median", "mean", TAIL)),
        Column("off by\nat most", "d"),
        Column("unattri\u00adbuted", ".1%"),
    )
    sections = _sections([cell for cell in cells if cell.marks_per_iteration], _marks)
    empty = "Whose the ECN marks are was not measured."
    return Table(columns, sections, "ECN marks per iteration", empty=empty)


def describe_gains(results: Results) -> list[tuple[str, str]]:
    """Return, by cell, text on each job's gain as a share of interleaving's possible gain."""
    parts: dict[str, list[str]] = {}
    for cell in results.cells:
        gain = cell.last_half.gain_of_possible
        if gain is not None and cell.limit != "alone":
            parts.setdefault(cell.name, []).append(f"{cell.job} {gain:.0%}")
    return [(name, f": {', '.join(gained)}") for name, gained in parts.items()]


def describe_overlaps(results: Results) -> list[tuple[str, str]]:
    """Return, by cell and link, text on the share of a link's sending time in which several of its jobs sent."""
    return [(each.name, f" {each.first:.0%}, then {each.last_half:.0%}") for each in results.overlaps]


def describe_symmetry(results: Results) -> str:
    """Return a caption for variants whose jobs never come apart because the flow-level model has no jitter."""
    together = {
        each.name
        for each in results.overlaps
        if each.variant != results.study.baseline and min(each.first, each.last_half) > ALWAYS
    }
    if results.testbed.kind != "fluid" or not together:
        return ""
    return (
        f"alike jobs of {', '.join(sorted(together))} that begin together stay together in the fluid model, "
        "which has no jitter; give one a start_offset_ms to see whether they come apart"
    )


def _sections(cells: Sequence[JobCell], row: Callable[[JobCell], Sequence[Cell]]) -> tuple[Section, ...]:
    """Return a section for each variant; the first one of a group of cells has the group's title."""
    sections: list[Section] = []
    for group, same in by_group(cells, lambda cell: cell.id).items():
        first, *others = group_by_name(same, lambda cell: cell.name_in_group, row)
        sections += [replace(first, title=group), *others]
    return tuple(sections)


def _times(cell: JobCell, *, with_speedup: bool) -> Sequence[Cell]:
    last_half = cell.last_half
    limit, off = Cell("none"), Cell()
    if cell.limit_ms is not None:
        limit = Cell(cell.limit_ms, note=cell.limit)
        off = Cell(last_half.typical_ms / cell.limit_ms - 1)
    return (
        Cell(cell.job),
        repetitions_cell(cell.repetitions, cell.invalid),
        _typical(cell),
        Cell(cell.mean_ms, cell.mean_ci95_ms),
        tail_cell(cell.p99_ms, cell.p99_ci95_ms, cell.max_ms, cell.count),
        _typical(last_half),
        *([Cell(cell.speedup, cell.speedup_ci95)] if with_speedup else []),
        limit,
        off,
    )


def _typical(times: Statistics) -> Cell:
    return typical_cell(times.typical_ms, times.typical_ci95_ms, times.modes_ms)


def _marks(cell: JobCell) -> Sequence[Cell]:
    own = cell.marks_per_iteration
    if own is None:
        return ()
    return (
        Cell(cell.job),
        Cell(own.median, own.median_ci95),
        Cell(own.mean, own.mean_ci95),
        tail_cell(own.p99, own.p99_ci95, own.max, own.count),
        Cell(own.bound),
        Cell(own.unattributed_share),
    )
