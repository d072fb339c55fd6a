# SPDX-License-Identifier: Apache-2.0
"""The comparison of testbeds as a page: the paper's figures beside each testbed's, and how far each can be trusted."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from analysis.reading.cells import CellId
from analysis.render.interval_chart import ChartAxis, ChartRow, Mark, chart_html
from analysis.render.page import Html, concatenate, fill_template, paragraph, render_document, table_html
from analysis.reports.expectation_comparison import ExpectationLine, expectation_lines
from analysis.reports.testbed_comparison import (
    TestbedCell,
    TestbedComparison,
    cell_tables,
    count_verdicts,
    describe_change,
    expectation_tables,
)
from analysis.statistics.intervals import Interval
from roundabout.core.verdict_words import Word
from roundabout.store.files import write_text

NAME = "testbeds.html"
COLOURS = {"fluid": "#8a929b", "packets": "#0072B2", "lab": "#E69F00", "rack": "#009E73"}
OTHERS = "#CC79A7"
"""The color of a plugin's testbed."""
MAX_ROWS = 24
"""Largest number of rows of the chart of speed-ups; more are in the tables alone."""
CAPTION = (
    "Each figure as a multiple of the paper's, with its 95 % interval; the band is the tolerance. Figures without a "
    "printed value, such as bounds and curves, are in the table alone."
)


def page_path(runs: Path, experiment: str) -> Path:
    """Return the path of an experiment's page below the folder `runs`."""
    return runs / experiment / NAME


def write_page(comparison: TestbedComparison, runs: Path, path: Path | None = None) -> Path:
    """Write the page to `path`, by default beside the experiment's runs below `runs`, and return its path."""
    path = path or page_path(runs, comparison.experiment)
    folder = os.path.relpath(runs / comparison.experiment, path.parent)
    write_text(path, render_comparison(comparison, "" if folder == "." else f"{folder}/"))
    return path


def render_comparison(comparison: TestbedComparison, folder: str = "") -> str:
    """Return the page's HTML. `folder` leads from the page to the runs' folders: empty, or with a slash at its end."""
    tables = expectation_tables(comparison)
    cells = cell_tables(comparison)
    chart = expectations_chart(comparison)
    body = fill_template(
        "testbeds",
        comparison=comparison,
        change=describe_change(comparison) if comparison.changed else "",
        counts=[(kind, _counted(found)) for kind, found in count_verdicts(comparison).items()],
        speedups=speedups_chart(comparison),
        chart=chart + paragraph(CAPTION) if chart else chart,
        expectations=concatenate(map(table_html, tables)) if tables else Html(""),
        cells=[(table.title, table_html(table)) for table in cells],
        folder=folder,
    )
    return render_document(f"{comparison.experiment} on {', '.join(comparison.kinds)}", body)


def speedups_chart(comparison: TestbedComparison) -> Html:
    """Return a chart of each job's speed-up over the baseline by testbed; nothing if there are none, or too many."""
    cells = [cell for cell in comparison.cells if any(own.speedup is not None for own in cell.testbeds.values())]
    if not 0 < len(cells) <= MAX_ROWS:
        return Html("")
    rows = [_speedup_row(comparison, cell) for cell in cells]
    axis = ChartAxis("times as fast as the same testbed's baseline", 1.0, "slower", "faster", logarithmic=True)
    return chart_html(rows, axis, "Speed-up of each job, by testbed", _key(comparison))


def _speedup_row(comparison: TestbedComparison, cell: TestbedCell) -> ChartRow:
    found = {kind: cell.testbeds[kind] for kind in comparison.kinds if kind in cell.testbeds}
    marks = [_mark(kind, own.speedup, own.speedup_ci95) for kind, own in found.items() if own.speedup is not None]
    text = " · ".join(f"{own.speedup:.2f}" for own in found.values() if own.speedup is not None)
    id_ = CellId(cell.levels)
    return ChartRow(((id_.name_in_group, ""), (cell.job, "")), tuple(marks), text, group=id_.group)


def expectations_chart(comparison: TestbedComparison) -> Html:
    """Return a chart of each printed figure on all testbeds, as multiples of the paper's; nothing without any."""
    lines = [line for line in expectation_lines(comparison.expectations) if _is_drawn(line)]
    rows = [_expectation_row(comparison, line) for line in lines]
    axis = ChartAxis("times the paper's figure", 1.0)
    return chart_html(rows, axis, f"{comparison.experiment}, beside the paper", _key(comparison)) if rows else Html("")


def _expectation_row(comparison: TestbedComparison, line: ExpectationLine) -> ChartRow:
    assert line.paper
    off = (line.tolerance or 0.0) / abs(line.paper)
    found = {kind: line.figures[kind] for kind in comparison.kinds if kind in line.figures}
    marks = [
        _mark(kind, own.measured / line.paper, own.ci95 and _over(own.ci95, line.paper))
        for kind, own in found.items()
        if own.measured is not None
    ]
    text = " · ".join(f"{mark.value:.2f}" for mark in marks)
    return ChartRow(((line.subject, ""),), tuple(marks), text, band=(1 - off, 1 + off) if off else None)


def _over(interval: Interval, paper: float) -> Interval:
    """Return the interval of a figure over the paper's, which may be negative."""
    low, high = sorted(end / paper for end in interval)
    return low, high


def _mark(kind: str, value: float, interval: Interval | None) -> Mark:
    return Mark(value, interval, COLOURS.get(kind, OTHERS), f"{kind}: {value:.3g}")


def _key(comparison: TestbedComparison) -> tuple[tuple[str, str], ...]:
    return tuple((kind, COLOURS.get(kind, OTHERS)) for kind in comparison.kinds)


def _is_drawn(line: ExpectationLine) -> bool:
    return bool(line.paper) and any(each.measured is not None for each in line.figures.values())


def _counted(found: dict[str, int]) -> Sequence[tuple[str, int]]:
    return [(word, found[word]) for word in get_args(Word) if found.get(word)]
