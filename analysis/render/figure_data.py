# SPDX-License-Identifier: Apache-2.0
"""The data of a figure as CSV, named by its key and its axes."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.offsetbox import TextArea
from matplotlib.patches import Rectangle
from matplotlib.text import Text

COLUMNS = ("panel", "series", "part", "x_label", "y_label", "x", "x_to", "y", "y_to")
"""Columns of the CSV. `part` is the repetition, or `median` over repetitions, or the job if the figure has no key of
jobs.

`x_to` and `y_to` are the other ends of bars and areas.
"""
Names = dict[Any, str]
Ends = tuple[Any, Any, Any, Any]


def csv_of(figure: Figure) -> str:
    """Return CSV with a row for each point of a line; panels without lines have rows for points of areas, or bars."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    names = _names(figure)
    for panel in figure.axes:
        about = (panel.get_title(loc="left"), panel.get_xlabel(), panel.get_ylabel())
        for artist, points in _series_of(panel):
            series, part = _name_of(artist, names), artist.get_gid() or ""
            writer.writerows((about[0], series, part, *about[1:], *map(_figure, point)) for point in points)
    return text.getvalue()


@contextmanager
def named_series(figure: Figure) -> Iterator[None]:
    """Let SVG files in this block name each line, area and bar: its id is `drawn`, its series, part and points.

    The id has `|` between these, and points only where each has a marker. Pages hide series and label points by it.
    """
    names = _names(figure)
    drawn: list[Artist] = [artist for panel in figure.axes for artist in _drawn(panel)]
    parts = [artist.get_gid() for artist in drawn]
    for artist, part in zip(drawn, parts, strict=True):
        has_markers = isinstance(artist, Line2D) and artist.get_marker() not in ("", " ", "None", None)
        points = [f"{x:.4g}; {y:.4g}" for x, y in np.asarray(artist.get_xydata())] if has_markers else []  # type: ignore[attr-defined]
        artist.set_gid("|".join(["drawn", _name_of(artist, names), part or "", *points]))
    try:
        yield
    finally:
        for artist, part in zip(drawn, parts, strict=True):
            artist.set_gid(part)


def _drawn(panel: Axes) -> Iterator[Artist]:
    """Yield the lines, areas and bars of a panel, without lines that mark a level."""
    yield from (line for line in panel.lines if line.get_transform() == panel.transData)
    yield from (area for area in panel.collections if isinstance(area, PolyCollection))
    yield from (bar for bar in panel.patches if isinstance(bar, Rectangle))


def _series_of(panel: Axes) -> Iterator[tuple[Artist, Iterator[Ends]]]:
    """Yield artists with data, without lines that mark a level."""
    lines = [line for line in panel.lines if line.get_transform() == panel.transData]
    yield from ((line, ((x, "", y, "") for x, y in np.asarray(line.get_xydata()))) for line in lines)
    if not lines:
        yield from ((area, _area(area)) for area in panel.collections if isinstance(area, PolyCollection))
        yield from ((bar, iter([_bar(bar)])) for bar in panel.patches if isinstance(bar, Rectangle))


def _area(area: PolyCollection) -> Iterator[Ends]:
    """Yield the range of heights at each x."""
    for path in area.get_paths():
        x, y = np.asarray(path.vertices).T
        yield from ((at, "", y[x == at].min(), y[x == at].max()) for at in np.unique(x))


def _bar(bar: Rectangle) -> Ends:
    (left, bottom), width, height = bar.get_xy(), bar.get_width(), bar.get_height()
    return left, left + width, bottom, bottom + height


def _names(figure: Figure) -> Names:
    """Return the names that keys give to a color, or to a color and dashes."""
    words = [text for area in figure.findobj(TextArea) for text in area.findobj(Text) if isinstance(text, Text)]
    names: Names = {to_hex(text.get_color()): text.get_text() for text in words if text.get_text()}
    for legend in figure.findobj(Legend):
        for line, text in zip(legend.get_lines(), legend.get_texts(), strict=False):
            names[to_hex(line.get_color()), _dashes(line)] = text.get_text()
            names.setdefault(to_hex(line.get_color()), text.get_text())
            names.setdefault(_dashes(line), text.get_text())
    return names


def _name_of(artist: Any, names: Names) -> str:
    if not isinstance(artist, Line2D):
        return names.get(to_hex(tuple(np.ravel(artist.get_facecolor())[:3])), "")
    colour, dashes = to_hex(artist.get_color()), _dashes(artist)
    if (colour, dashes) in names:
        return names[colour, dashes]
    return " ".join(dict.fromkeys(names[each] for each in (colour, dashes) if each in names))


def _dashes(line: Line2D) -> str:
    return str(line._unscaled_dash_pattern)  # type: ignore[attr-defined]


def _figure(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"
