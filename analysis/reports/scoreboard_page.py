# SPDX-License-Identifier: Apache-2.0
"""The scoreboard as a page.

Each result has a row with a small picture of the paper's figures and the measured ones.
"""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import papers
from analysis.expectations.verdict_tables import describe
from analysis.expectations.verdicts import Verdict
from analysis.render.page import Html, fill_template, render_document, render_part, save_figure
from analysis.render.style import FAINT, INK, RC, SOFT, TONE_COLOURS
from analysis.render.tables import TONES
from analysis.reports.expectation_comparison import ExpectationLine, expectation_lines
from analysis.reports.scoreboard import HEADINGS, ScoreboardRow, ShowingExperiment, format_age
from analysis.reports.scoreboard_table import summarize
from roundabout.store.files import write_text

MARKERS = {"packets": "o", "lab": "s", "fluid": "D", "rack": "^"}
OTHERS = "P"
"""The marker of a plugin's testbed."""
WIDTH_IN, LINE_IN = 5.2, 0.24
LETTERS = 45
"""Largest number of letters in a line of a label, which has two."""
MAX_SHOWN = 9
"""Largest number of figures in a picture."""


def write_page(lines: Sequence[ScoreboardRow], path: Path) -> Path:
    """Write the page and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, render_scoreboard(lines))
    return path


def render_scoreboard(lines: Sequence[ScoreboardRow]) -> str:
    """Return the page's HTML."""
    rows = [(line, [_shown(each) for each in line.showings if each.measured], _image(line)) for line in lines]
    return render_document("Scoreboard", fill_template("scoreboard", lead=summarize(lines), rows=rows))


def _shown(showing: ShowingExperiment) -> dict[str, Any]:
    found = [(each.verdict, each.claim or f"{describe(each)} (paper {each.expected})", each.found)
             for each in showing.measured]  # fmt: skip
    place = HEADINGS.get(showing.testbed or "", showing.testbed)
    return {"of": showing, "found": found, "age": format_age(showing.age_s or 0), "place": place}


def _image(line: ScoreboardRow) -> Html:
    figure = draw_row(line)
    if figure is None:
        return Html("")
    data = save_figure(figure, "svg", Date=None)
    return render_part("picture", data=data, alt=describe_picture(line), width=f"{WIDTH_IN * 96:.0f}")


def describe_picture(line: ScoreboardRow) -> str:
    """Return what a row's picture shows, in words."""
    return f"{line.id}: the paper's figures{' against those of each testbed' if line.measured else ''}"


def draw_row(line: ScoreboardRow) -> Figure | None:
    """Draw the paper's figures and each testbed's, if any. None if the paper printed no figure."""
    mpl.rcParams.update(RC)
    drawn = [
        (each, each.name)
        for each in expectation_lines(line.compared)
        if any(own.measured is not None for own in each.figures.values())
    ]
    curves = [each for each in line.measured if any(part.x is not None for part in each.parts)]
    if drawn:
        figure, axes = _frame(min(len(drawn), MAX_SHOWN))
        for place, (each, name) in enumerate(drawn[:MAX_SHOWN]):
            _against(axes, place, each, name)
        return figure
    return _curve(curves[0]) if curves else _alone(line)


def _frame(lines: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_IN, 0.12 + LINE_IN * lines))
    axes = figure.add_axes((0.5, 0.02, 0.49, 0.96))
    axes.set_xlim(0, 1.75)
    axes.set_ylim(lines - 0.5, -0.5)
    axes.set_axis_off()
    return figure, axes


def _against(axes: Axes, place: int, line: ExpectationLine, name: str) -> None:
    """Draw one figure on a scale of its own, from 0 (or what is below it) to the highest value."""
    known = {kind: each for kind, each in line.figures.items() if each.measured is not None}
    ends = [end for end in (line.paper, line.at_least, line.at_most) if end is not None]
    measured = [each.measured for each in known.values() if each.measured is not None]
    values = [*measured, *ends, *(end for each in known.values() for end in each.ci95 or ())]
    low, high = min(0.0, *values), max(0.0, *values)
    scale = (high - low) or 1.0

    def at(value: float) -> float:
        return float((value - low) / scale)

    axes.plot([0, 1], [place, place], color=FAINT, linewidth=1)
    if line.paper is not None and line.tolerance:
        begin, end = (min(max(at(line.paper + side * line.tolerance), 0), 1.03) for side in (-1, 1))
        axes.barh(place, end - begin, left=begin, height=0.62, color=FAINT)
    if line.at_least is not None or line.at_most is not None:
        begin = at(line.at_least) if line.at_least is not None else 0.0
        end = at(line.at_most) if line.at_most is not None else 1.0
        axes.barh(place, end - begin, left=begin, height=0.62, color=FAINT)
    for end in ends:
        axes.plot([at(end)] * 2, [place - 0.31, place + 0.31], color=INK, linewidth=1.6)
    for kind, each in known.items():
        colour = TONE_COLOURS[TONES[each.verdict]]
        if each.ci95:
            axes.plot([at(end) for end in each.ci95], [place, place], color=colour, linewidth=1.6)
        assert each.measured is not None
        axes.plot(at(each.measured), place, MARKERS.get(kind, OTHERS), color=colour, markersize=4.5, alpha=0.85)
    _label(axes, place, name, ", ".join(each.text for each in known.values()))


def _label(axes: Axes, place: int, name: str, value: str) -> None:
    short = "\n".join(textwrap.wrap(name, LETTERS, max_lines=2, placeholder=" …", break_on_hyphens=False))
    axes.text(-0.04, place, short, ha="right", va="center", fontsize=7, color=SOFT, linespacing=1)
    axes.text(1.08, place, value, ha="left", va="center", fontsize=7, color=INK)


def _curve(record: Verdict) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 1.3))
    axes = figure.add_axes((0.14, 0.2, 0.82, 0.74))
    for name in dict.fromkeys(part.name for part in record.parts):
        own = [part for part in record.parts if part.name == name and part.measured is not None]
        x, paper, measured = (np.array([getattr(part, each) for part in own]) for each in ("x", "paper", "measured"))
        axes.plot(x, paper, color=SOFT, linestyle="--")
        axes.plot(x, measured, color=TONE_COLOURS[TONES[record.verdict]])
        axes.scatter(x, measured, s=16, color=[TONE_COLOURS[TONES[part.verdict]] for part in own], zorder=3)
    axes.tick_params(labelsize=7)
    return figure


def _alone(line: ScoreboardRow) -> Figure | None:
    """Draw the paper's figures, a bar each; those of one table's row on one scale."""
    entries = next(row for _, row in papers.rows() if row.id == line.id).entries
    found: list[tuple[str, float, str, float]] = []
    for entry in entries:
        figures = entry.figures if isinstance(entry.figures, Mapping) else {entry.what: entry.figures}
        known = {name: value for name, value in figures.items() if isinstance(value, float | int)}
        found += [(name, value, entry.unit, max(known.values())) for name, value in known.items()]
    found = found[:MAX_SHOWN]
    if not found:
        return None
    figure, axes = _frame(len(found))
    for place, (name, value, unit, most) in enumerate(found):
        axes.barh(place, value / most, height=0.62, color=FAINT)
        _label(axes, place, name, f"{value:.4g} {unit}")
    return figure
