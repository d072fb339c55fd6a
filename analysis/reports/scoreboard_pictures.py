# SPDX-License-Identifier: Apache-2.0
"""Pictures of the scoreboard: all rows on one axis, and a row's figures.

The axis is the measured figure over the paper's, so that 1 is the paper's figure in each line.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import papers
from analysis.expectations.verdicts import Verdict
from analysis.render.style import FAINT, INK, RC, SOFT, TONE_COLOURS
from analysis.render.tables import TONES
from analysis.reports.expectation_comparison import ExpectationLine
from analysis.reports.scoreboard import ScoreboardRow, count_passes
from roundabout.core.verdict_words import Word

MARKERS = {"packets": "o", "lab": "s", "fluid": "D", "rack": "^"}
OTHERS = "P"
"""The marker of a plugin's testbed."""
WIDTH_IN, LINE_IN, AXIS_IN = 8.6, 0.27, 0.75
LETTERS = 58
"""Largest number of letters in a label of one line."""
MAX_SHOWN = 10
"""Largest number of figures in a picture of a row."""
ENDS = (0.25, 4.0)
"""The axis' ends, as multiples of the paper's figure. What is outside is drawn at the end, as an arrow."""
TICKS = {0.25: "a quarter", 0.5: "half", 1.0: "paper", 2.0: "twice", 4.0: "four times"}


@dataclass(frozen=True)
class RatioLine:
    """A figure in multiples of the paper's: the measured one, its interval, the allowed range, and the testbed."""

    label: str
    text: str
    verdict: Word
    testbed: str
    measured: float | None = None
    interval: tuple[float, float] | None = None
    allowed: tuple[float, float] | None = None


def draw_overview(lines: Sequence[ScoreboardRow]) -> Figure:
    """Draw a line for each row: of its deciding figures the one that differs most from the paper's."""
    return _draw([_overview_line(line) for line in lines])


def draw_row(line: ScoreboardRow) -> Figure | None:
    """Draw a row's deciding figures, or what the paper prints if nothing is measured. None without any number."""
    shown = _measured_lines(line)
    curves = [each for each in line.decisive if any(part.x is not None for part in each.parts)]
    if shown:
        return _draw(shown[:MAX_SHOWN])
    return _draw_curve(curves[0]) if curves else _draw_printed(line)


def describe_picture(line: ScoreboardRow) -> str:
    """Return the content of a row's picture in words."""
    return f"{line.id}: the paper's figures{' against those here' if line.measured else ''}"


def _overview_line(line: ScoreboardRow) -> RatioLine:
    label, known = f"{line.id}: {line.what}", _measured_lines(line)
    count = count_passes(line.decisive) if line.decisive else "no run yet"
    if not known:
        return RatioLine(label, count, line.verdict, "")
    worst = max(known, key=_deviation)
    return RatioLine(label, count, line.verdict, worst.testbed, worst.measured, worst.interval, worst.allowed)


def _measured_lines(line: ScoreboardRow) -> list[RatioLine]:
    """Return a row's deciding figures that have a place on the axis."""
    return [found for each in line.decisive_lines for found in _ratio_lines(each) if found.measured is not None]


def _deviation(line: RatioLine) -> float:
    """Return how far a figure is from the middle of the allowed range, in halves of the range."""
    assert line.measured is not None
    low, high = line.allowed or (1.0, 1.0)
    if line.measured in (low, high) or low < line.measured < high:
        return 0.0 if high == np.inf or low <= 0 else abs(line.measured - 1) / max(high - 1, 1e-9)
    return 1 + abs(float(np.log(max(line.measured, 1e-9))))


def _ratio_lines(line: ExpectationLine) -> list[RatioLine]:
    """Return a line for each testbed; without a figure, if the paper's figure or bound is not above 0."""
    unit = _unit_of(line)
    paper, low, high = line.paper, line.at_least, line.at_most
    base = paper if paper is not None else low if low is not None else high
    result = []
    for testbed, each in line.figures.items():
        text = f"{each.text} of {line.paper_text}" if paper is not None else f"{each.text}, {line.paper_text}"
        if base is None or base <= 0 or each.measured is None:
            result.append(RatioLine(line.name, text, each.verdict, testbed))
            continue
        tolerance = (line.tolerance or 0.0) / base
        allowed = (1 - tolerance, 1 + tolerance) if paper is not None else (
            low / base if low is not None else 0.0,
            high / base if high is not None else np.inf,
        )  # fmt: skip
        interval = (each.ci95[0] / base, each.ci95[1] / base) if each.ci95 else None
        result.append(
            RatioLine(line.name, f"{text}{unit}", each.verdict, testbed, each.measured / base, interval, allowed)
        )
    return result


def _unit_of(line: ExpectationLine) -> str:
    """Return the unit after a space, from the tolerance's text, which ends with it; empty without one."""
    words = line.tolerance_text.split(maxsplit=2)
    return f" {words[2]}" if len(words) > 2 else ""


def _draw(lines: Sequence[RatioLine]) -> Figure:
    mpl.rcParams.update(RC)
    height = AXIS_IN + LINE_IN * len(lines)
    figure = Figure(figsize=(WIDTH_IN, height))
    axes = figure.add_axes((0.46, (AXIS_IN - 0.15) / height, 0.34, LINE_IN * len(lines) / height))
    axes.set_xscale("log")
    axes.set_xlim(*ENDS)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xticks(list(TICKS), list(TICKS.values()))
    axes.minorticks_off()
    axes.set_yticks([])
    axes.axvline(1, color=INK, linewidth=1)
    for place, each in enumerate(lines):
        _draw_line(axes, place, each)
    return figure


def _draw_line(axes: Axes, place: int, line: RatioLine) -> None:
    colour = TONE_COLOURS[TONES[line.verdict]]
    low, high = ENDS
    if line.allowed:
        begin, end = np.clip(line.allowed, low, high)
        axes.barh(place, end - begin, left=begin, height=0.66, color=FAINT, zorder=0)
    if line.interval:
        axes.plot(np.clip(line.interval, low, high), [place, place], color=colour, linewidth=2)
    if line.measured is not None:
        marker = "<" if line.measured < low else ">" if line.measured > high else MARKERS.get(line.testbed, OTHERS)
        axes.plot(np.clip(line.measured, low, high), place, marker, color=colour, markersize=6, clip_on=False)
    label = textwrap.shorten(line.label, LETTERS, placeholder=" …")
    beside: Any = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "va": "center",
        "fontsize": 8.5,
    }
    axes.annotate(label, (0, place), (-8, 0), ha="right", color=INK, **beside)
    axes.annotate(line.text, (1, place), (8, 0), ha="left", color=colour, weight="bold", **beside)


def _draw_curve(record: Verdict) -> Figure:
    """Draw a curve of the paper, dashed, and the measured one."""
    mpl.rcParams.update(RC)
    figure = Figure(figsize=(WIDTH_IN, 2.4))
    axes = figure.add_axes((0.1, 0.2, 0.86, 0.74))
    for name in dict.fromkeys(part.name for part in record.parts):
        own = [part for part in record.parts if part.name == name and part.measured is not None]
        x, paper, measured = (np.array([getattr(part, each) for part in own]) for each in ("x", "paper", "measured"))
        axes.plot(x, paper, color=SOFT, linestyle="--")
        axes.plot(x, measured, color=TONE_COLOURS[TONES[record.verdict]])
        axes.scatter(x, measured, s=16, color=[TONE_COLOURS[TONES[part.verdict]] for part in own], zorder=3)
    return figure


def _draw_printed(line: ScoreboardRow) -> Figure | None:
    """Draw the paper's figures as text, without any measured one."""
    entries = papers.row_of(line.id).entries
    found: list[RatioLine] = []
    for entry in entries:
        figures = entry.figures if isinstance(entry.figures, Mapping) else {entry.what: entry.figures}
        known = {name: value for name, value in figures.items() if isinstance(value, float | int)}
        found += [RatioLine(name, f"{value:.4g} {entry.unit}", "not measured", "") for name, value in known.items()]
    return _draw(found[:MAX_SHOWN]) if found else None
