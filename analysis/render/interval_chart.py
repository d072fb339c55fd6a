# SPDX-License-Identifier: Apache-2.0
"""Charts of figures with intervals as HTML: a row for each, whose text keeps its size on a narrow page."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from matplotlib.ticker import LogLocator, MaxNLocator

from analysis.render.page import Html, fill_template
from analysis.render.style import INK
from analysis.render.tables import Ends

MARGIN = 0.04
"""Share of the axis that is left free at each of its ends."""
MAX_STRETCH = 2.0
"""Largest factor by which intervals may stretch the axis beyond the figures; longer intervals are cut off."""
MAX_TICKS = 4
LOG_SPAN = 4.0
"""Ratio of an axis' ends from which its ticks are 1, 2, 5, 10 and so on."""


@dataclass(frozen=True)
class Mark:
    """A figure on the axis, with its interval and color; `about` is shown under the pointer."""

    value: float
    interval: Ends | None = None
    colour: str = INK
    about: str = ""


@dataclass(frozen=True)
class ChartRow:
    """A row: names at its left, each with a color or "", its marks, and its figures as text at its right.

    `typical` is drawn as a stroke among many marks, and `band` as an area behind them. Rows with a `group` stand below
    its heading.
    """

    names: tuple[tuple[str, str], ...]
    marks: tuple[Mark, ...]
    text: str
    note: str = ""
    group: str = ""
    typical: float | None = None
    band: tuple[float, float] | None = None


@dataclass(frozen=True)
class ChartAxis:
    """The axis of a chart: its label, the value of its reference line, and whether it is logarithmic.

    `below` and `above` say what lies on each side of the reference.
    """

    label: str
    reference: float | None = None
    below: str = ""
    above: str = ""
    logarithmic: bool = False


class _Place(NamedTuple):
    """A mark's place in percent of the axis, and its interval's."""

    at: float
    ends: tuple[float, float] | None
    colour: str
    about: str


def chart_html(rows: Sequence[ChartRow], axis: ChartAxis, alt: str, key: Sequence[tuple[str, str]] = ()) -> Html:
    """Return a chart of at least one row as HTML.

    `alt` describes it for readers who do not see it, and `key` names colors of marks.
    """
    low, high = _range(rows, axis)
    place = _scale(low, high, logarithmic=axis.logarithmic)
    ticks = [(place(tick), f"{tick:g}") for tick in _ticks(low, high, logarithmic=axis.logarithmic)]
    sections = [
        (group, [(row, list(_places(row, place)), _optional(row.typical, place), _band(row, place)) for row in same])
        for group, same in groupby(rows, key=lambda row: row.group)
    ]
    return fill_template(
        "chart",
        sections=sections,
        axis=axis,
        ticks=ticks,
        reference=_optional(axis.reference, place),
        names=max(len(row.names) for row in rows),
        alt=alt,
        key=key,
    )


def _places(row: ChartRow, place: Callable[[float], float]) -> Iterator[_Place]:
    for mark in row.marks:
        ends = None
        if mark.interval and mark.interval[0] != mark.interval[1]:
            low, high = mark.interval
            ends = (0.0 if low is None else place(low), 100.0 if high is None else place(high))
        yield _Place(place(mark.value), ends, mark.colour, mark.about)


def _band(row: ChartRow, place: Callable[[float], float]) -> tuple[float, float] | None:
    return (place(row.band[0]), place(row.band[1])) if row.band else None


def _optional(value: float | None, place: Callable[[float], float]) -> float | None:
    return None if value is None else place(value)


def _range(rows: Iterable[ChartRow], axis: ChartAxis) -> tuple[float, float]:
    """Return the ends of the axis: all figures, the reference, and intervals and bands unless they are very long."""
    rows = list(rows)
    values = [mark.value for row in rows for mark in row.marks]
    values += [] if axis.reference is None else [axis.reference]
    ends = [end for row in rows for mark in row.marks for end in mark.interval or () if end is not None]
    ends += [end for row in rows for end in row.band or ()]
    low, high = min(values), max(values)
    room = (MAX_STRETCH - 1) * max(high - low, abs(high))
    floor = low / MAX_STRETCH if axis.logarithmic else low - room
    ceiling = high * MAX_STRETCH if axis.logarithmic else high + room
    low, high = max(min([low, *ends]), floor), min(max([high, *ends]), ceiling)
    return (low, high) if low < high else (low - abs(low) / 10 - 1e-9, high + abs(high) / 10 + 1e-9)


def _scale(low: float, high: float, *, logarithmic: bool) -> Callable[[float], float]:
    """Return a function that gives a value's place in percent of the axis, at most at its ends."""
    move = math.log if logarithmic else float

    def place(value: float) -> float:
        if logarithmic and value <= 0:
            return 0.0
        share = (move(value) - move(low)) / (move(high) - move(low))
        return round(100 * min(max(MARGIN + share * (1 - 2 * MARGIN), 0.0), 1.0), 2)

    return place


def _ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    if logarithmic and high / low > LOG_SPAN:
        locator: LogLocator | MaxNLocator = LogLocator(subs=(1, 2, 5))
    else:
        locator = MaxNLocator(MAX_TICKS, steps=[1, 2, 2.5, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]
