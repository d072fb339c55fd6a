# SPDX-License-Identifier: Apache-2.0
"""The tables of compared variants: speed-ups by job, and how soon jobs interleave."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType

from analysis.reading.congestion.marks_and_drops import WHAT
from analysis.render import screen as on_screen
from analysis.render.tables import Cell, Column, Section, Table, group_by_title
from analysis.studies.variants.study import Gain, Interleaving, Results

_FIGURES = {
    "slowest": Column("slowest job\nover alone", ".2f"),
    "marks": Column("marks per\niteration", ".0f"),
    "drops": Column("drops per\niteration", ".1f"),
}
"""Of a meeting, besides when it interleaves."""

_HELD = {
    "adjustments": Column("adjusted,\nper minute", ".0f"),
    "drift": Column("drift,\nms per minute", "+.1f"),
}
"""Of one whose jobs have timetables."""


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    timetables = timetable_table(results)
    shown = (gain_table(results), interleaving_table(results), *([timetables] if timetables.sections else []))
    return [on_screen.table_renderable(each) for each in shown]


def gain_table(results: Results) -> Table:
    """Return a table of speed-ups with a row for each variant and two columns for each job.

    The last rows of a section are the flow-level limits.
    """
    jobs = list(dict.fromkeys(gain.job for gain in results.gains))
    columns = [Column(kind="names")]
    for job in jobs:
        columns += [Column(f"{job},\nmean", ".2f"), Column(f"{job},\np99 or max", ".2f", only="page")]
    by_group: dict[str, list[Gain]] = {}
    for gain in results.gains:
        by_group.setdefault(gain.group, []).append(gain)
    sections = tuple(Section(tuple(_rows(own, jobs)), group) for group, own in by_group.items())
    title = f"Speed-up over {results.study.baseline}, with 95 % intervals"
    empty = f"Nothing ran beside a variant {results.study.baseline}."
    return Table(tuple(columns), sections, title, empty=empty, divisible=True)


def interleaving_table(results: Results) -> Table:
    """Return a table of when jobs interleave, of the slowest job, and of the ports' marks and drops.

    Columns without any known figure are left out.
    """
    known = [each for each in _FIGURES if any(getattr(meeting, each) is not None for meeting in results.meetings)]
    columns = (
        *(Column(kind="names"), Column("interleaved\nfrom iteration", ".1f")),
        *(_FIGURES[name] for name in known),
    )
    sections = group_by_title(results.meetings, lambda each: each.group, lambda each: _meeting(each, known))
    caption = "" if {*WHAT} <= {*known} else f"not counted: {' and '.join(each for each in WHAT if each not in known)}"
    return Table(columns, sections, "How jobs come apart", caption, empty="No jobs shared a link.")


def timetable_table(results: Results) -> Table:
    """Return a table of how often jobs with timetables are delayed, and how fast they drift."""
    reported = [each for each in results.meetings if each.drift is not None or each.adjustments is not None]
    sections = group_by_title(reported, lambda each: each.group, lambda each: (Cell(each.name), *_figures(each, _HELD)))
    return Table((Column(kind="names"), *_HELD.values()), sections, "Jobs and their timetables")


def _rows(gains: Sequence[Gain], jobs: Sequence[str]) -> list[tuple[Cell, ...]]:
    rows = []
    for name in dict.fromkeys(gain.name for gain in gains):
        own = {gain.job: gain for gain in gains if gain.name == name}
        rows.append((Cell(name), *(cell for job in jobs for cell in _gain(own.get(job)))))
    for name, limit in (("fluid, interleaved", "possible"), ("fluid, alone", "at_most")):
        limits = {gain.job: getattr(gain, limit) for gain in gains}
        rows.append((Cell(name), *(cell for job in jobs for cell in (Cell(limits.get(job)), Cell()))))
    return rows


def _gain(gain: Gain | None) -> tuple[Cell, Cell]:
    if gain is None:
        return Cell(), Cell()
    return Cell(gain.mean, gain.mean_ci95), Cell(gain.tail, gain.tail_ci95, note=gain.tail_of)


def _meeting(each: Interleaving, known: Sequence[str]) -> Sequence[Cell]:
    first = Cell(each.told) if each.interleaved is None else Cell(each.interleaved, each.interleaved_ci95)
    return Cell(each.name), first, *_figures(each, known)


def _figures(each: Interleaving, names: Iterable[str]) -> Iterator[Cell]:
    return (Cell(getattr(each, name), getattr(each, f"{name}_ci95")) for name in names)
