# SPDX-License-Identifier: Apache-2.0
"""Results on a screen of 80 columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from analysis.render.tables import SOFT_BREAK, SOFT_HYPHEN, Cell, Column, Section, Table, Tone, format_interval

MARKS = {Tone.GOOD: ("✓", "green"), Tone.BAD: ("✗", "red"), Tone.OPEN: ("?", "yellow"), Tone.UNKNOWN: ("-", "dim")}
UNLIMITED = 10_000
"""Width of a screen, in columns, that has room for every table."""


def table_renderable(table: Table, *, title_style: str = "bold") -> RenderableType:
    """Return a table for the screen; intervals and notes are on a cell's second line.

    Title and caption have the screen's width, not the table's: a narrow table would break them into many lines.
    """
    table = table.for_medium("screen")
    if not table.sections and table.empty:
        return Text(table.empty, style="dim")
    result = _DividedTable(table) if table.divisible else _rich_table(table)
    caption = f"{table.caption}\n" if table.caption else ""  # an empty line parts it from the title of the next table
    around = (Text(table.title, style=title_style), result, Text(caption, style="dim italic"))
    return Group(*(each for each in around if each))


@dataclass(frozen=True)
class _DividedTable:
    """A table that is shown as several tables, each with the first column, if the screen is too narrow for one."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        places = [0]
        for place in range(1, len(self.table.columns)):
            wider = self.table.select([*places, place])
            if len(places) > 1 and _width(console, wider) > options.max_width:
                yield _rich_table(self.table.select(places))
                places = [0]
            places.append(place)
        yield _rich_table(self.table.select(places))


def _width(console: Console, table: Table) -> int:
    """Return the width of a table whose cells are not broken. Titles of sections may be."""
    cells = _rich_table(replace(table, sections=tuple(Section(section.rows) for section in table.sections)))
    return console.measure(cells, options=console.options.update(max_width=UNLIMITED)).maximum


def _rich_table(table: Table) -> RichTable:
    named = any(column.kind == "names" for column in table.columns)
    result = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=named)
    for column in table.columns:
        words = column.kind != "figures"
        style = "bold" if column.kind == "names" else ""
        result.add_column(
            _title(column),
            style=style,
            justify="left" if words else "right",
            no_wrap=not (words or column.wraps),
            overflow="fold" if words else "ellipsis",  # cut names that differ only at their ends would look alike
        )
    for section in table.sections:
        _add(result, section, table.columns)
    return result


def facts_renderable(pairs: Sequence[tuple[str, str]]) -> RenderableType:
    """Return a grid of terms and their values, without pairs whose value is empty."""
    grid = RichTable.grid(padding=(0, 2))
    for term, text in pairs:
        if text:
            grid.add_row(Text(term, style="dim"), text)
    return grid


def _add(result: RichTable, section: Section, columns: Sequence[Column]) -> None:
    result.add_section()
    if section.title:
        result.add_row(Text(section.title, style="bold"))
    for row in section.rows:
        result.add_row(*(_cell(*pair) for pair in zip(columns, row, strict=True)))


def _title(column: Column) -> str:
    return column.title.replace(f" {SOFT_BREAK}", "\n").replace(SOFT_HYPHEN, "-\n")


def _cell(column: Column, cell: Cell) -> Text:
    text = Text(column.format(cell.value))
    if cell.tone is not None:
        mark, colour = MARKS[cell.tone]
        text = Text(f"{mark} {text.plain}", style=colour)
    ends = column.format_ends(cell.interval)
    interval = (f"{ends[0]}-{ends[1]}" if _is_plain(ends) else format_interval(ends)) if ends else ""
    under = "\n".join(filter(None, (interval, cell.note)))
    if under:
        text.append(f"\n{under}" if text.plain else under, style="dim")
    return text


def _is_plain(ends: tuple[str, str]) -> bool:
    """Return True if a hyphen between both ends of an interval is no minus sign."""
    return all(ends) and not any(end.startswith("-") for end in ends)
