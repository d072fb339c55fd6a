# SPDX-License-Identifier: Apache-2.0
"""Tables as data: declared once by a study, shown by `screen` on 80 columns and by `page` as HTML."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import Literal, TypeVar

from roundabout.core.verdict_words import Word

T = TypeVar("T")
Ends = tuple[float | None, float | None]
"""The lower and upper end of an interval; None for an unbounded end."""

NumberFormat = str | Callable[[float], str]
"""A format specification, or a function that returns the text."""

SOFT_BREAK, SOFT_HYPHEN = "\u200b", "\u00ad"
"""Characters at which a column's title may be broken on narrow screens."""


class Tone(Enum):
    """The meaning of a word, by which it is colored."""

    GOOD = "pass"
    BAD = "fail"
    OPEN = "inconclusive"
    UNKNOWN = "not-measured"


TONES: Mapping[Word, Tone] = {
    "pass": Tone.GOOD,
    "fail": Tone.BAD,
    "inconclusive": Tone.OPEN,
    "not measured": Tone.UNKNOWN,
}


@dataclass(frozen=True)
class Column:
    """A column: its title, and the format, or the function, and the unit in which its figures are written.

    `kind` is its content: figures, words (which begin at the left), names (bold words) or code. `wraps` lets words
    among figures take several lines. `only` restricts it to the screen or to the page, which is wider.
    """

    title: str = ""
    form: NumberFormat = ".1f"
    unit: str = ""
    kind: Literal["figures", "words", "names", "code"] = "figures"
    wraps: bool = False
    only: Literal["screen", "page"] | None = None

    def format(self, value: float | str | None) -> str:
        """Return a value in the column's format; text as it is, empty for None."""
        if value is None or isinstance(value, str):
            return value or ""
        return f"{self._figure(value)}{self.unit}"

    def format_ends(self, interval: Ends | None) -> tuple[str, str] | None:
        """Return an interval's ends in the column's format, empty for an open end; None for an exact value."""
        if interval is None or (interval[0] is not None and interval[0] == interval[1]):
            return None
        low, high = ("" if end is None else self._figure(end) for end in interval)
        return low, high

    def _figure(self, value: float) -> str:
        return self.form(value) if callable(self.form) else f"{value:{self.form}}"


@dataclass(frozen=True)
class Cell:
    """A figure or a word, with an interval or a note below it. `why` explains the note."""

    value: float | str | None = None
    interval: Ends | None = None
    note: str = ""
    tone: Tone | None = None
    why: str = ""


@dataclass(frozen=True)
class Section:
    """Rows that belong together, with one cell for each column. A title stands on a line of its own."""

    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """A table of columns and sections of rows. `caption` stands below; `empty` replaces missing rows.

    The screen shows titles; a page has headings and text around tables instead. `tight` keeps figures on one line. A
    `divisible` table has a first column that names each row, and is shown as several tables on a narrow screen.
    """

    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    title: str = ""
    caption: str = ""
    empty: str = ""
    tight: bool = False
    divisible: bool = False

    def for_medium(self, medium: Literal["screen", "page"]) -> "Table":
        """Return the table with only the columns that the medium shows."""
        return self.select([place for place, column in enumerate(self.columns) if column.only in (None, medium)])

    def select(self, places: Sequence[int]) -> "Table":
        """Return the table with only the columns at `places`."""
        sections = (
            Section(tuple(tuple(row[place] for place in places) for row in section.rows), section.title)
            for section in self.sections
        )
        return replace(self, columns=tuple(self.columns[place] for place in places), sections=tuple(sections))


def group_by_name(
    items: Iterable[T], name: Callable[[T], str], row: Callable[[T], Sequence[Cell]]
) -> tuple[Section, ...]:
    """Return a section for each run of consecutive items with one name; only its first row shows the name."""
    sections = []
    for text, same in groupby(items, key=name):
        rows = [(Cell(text if place == 0 else ""), *row(item)) for place, item in enumerate(same)]
        sections.append(Section(tuple(rows)))
    return tuple(sections)


def group_by_title(
    items: Iterable[T], title: Callable[[T], str], row: Callable[[T], Sequence[Cell]]
) -> tuple[Section, ...]:
    """Return a section for each run of consecutive items with one title, which stands above its rows."""
    return tuple(Section(tuple(tuple(row(item)) for item in same), text) for text, same in groupby(items, key=title))


def one_section(rows: Iterable[Sequence[Cell]]) -> tuple[Section, ...]:
    """Return all rows as one section; an empty tuple without rows."""
    found = tuple(tuple(row) for row in rows)
    return (Section(found),) if found else ()


REPETITIONS = Column("n", "d", only="page")
"""The number of repetitions that a row's figures are computed from; only pages show the column."""


def repetitions_cell(count: int, invalid: int) -> Cell:
    """Return a cell with the number of repetitions, and a note on invalid trials that are left out."""
    return Cell(count, note=f"{invalid} left out" if invalid else "")


TAIL = "p99\nor max"


def tail_cell(p99: float | None, ci95: Ends | None, longest: float, count: int) -> Cell:
    """Return a cell with the 99th percentile; if it is None, with the longest value and a note on the number."""
    return Cell(longest, note=f"max of {count}") if p99 is None else Cell(p99, ci95)


def typical_cell(figure: float, ci95: Ends | None, modes: Ends | None) -> Cell:
    """Return a cell with the median, or, with a note, with the mean of iterations that have two modes."""
    return Cell(figure, ci95, note="" if modes is None else "mean")


def describe_modes(modes: Iterable[Ends | None]) -> str:
    """Return a caption for tables with means in place of medians; empty if no iterations have two modes."""
    if all(each is None for each in modes):
        return ""
    return (
        "mean: these iterations have two modes, so that their median is one or the other by chance; their speed-ups "
        "are of means"
    )


def format_interval(ends: tuple[str, str]) -> str:
    """Return an interval as text, such as `1 to 3` or `up to 3`, from its formatted ends."""
    low, high = ends
    if low and high:
        return f"{low} to {high}"
    return f"from {low}" if low else f"up to {high}" if high else "anything"
