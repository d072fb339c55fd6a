# SPDX-License-Identifier: Apache-2.0
"""The comparison of testbeds as a page: the paper's figures beside each testbed's, and how far each can be trusted."""

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from matplotlib.figure import Figure

from analysis.render.page import Html, concatenate, figure_html, fill_template, render_document, table_html
from analysis.render.style import FAINT, INK, draw_word_key, new_figure
from analysis.reports.expectation_comparison import ExpectationLine, expectation_lines
from analysis.reports.testbed_comparison import (
    TestbedComparison,
    cell_tables,
    count_verdicts,
    describe_change,
    expectation_tables,
)
from roundabout.core.verdict_words import Word
from roundabout.store.files import write_text

NAME = "testbeds.html"
COLOURS = {"fluid": "#8a929b", "packets": "#0072B2", "lab": "#E69F00", "rack": "#009E73"}
OTHERS = "#CC79A7"
"""The color of a plugin's testbed."""
LINE_IN, AROUND_IN = 0.42, 0.9
"""Height of a line of the figure, and of what is around its lines, inches."""
LABEL = 44
"""Number of letters for which a label of the figure has room."""
CAPTION = (
    "Each figure as a multiple of the paper's (the line at 1), with its 95 % interval; the band is what may differ. "
    "Figures without a printed value, such as bounds and curves, are in the table alone."
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
    figure = draw_expectations(comparison)
    body = fill_template(
        "testbeds",
        comparison=comparison,
        change=describe_change(comparison) if comparison.changed else "",
        counts=[(kind, _counted(found)) for kind, found in count_verdicts(comparison).items()],
        figure=figure_html(figure, CAPTION, f"{comparison.experiment}, beside the paper") if figure else Html(""),
        expectations=concatenate(map(table_html, tables)) if tables else Html(""),
        cells=[(table.title, table_html(table)) for table in cells],
        folder=folder,
    )
    return render_document(f"{comparison.experiment} on {', '.join(comparison.kinds)}", body)


def draw_expectations(comparison: TestbedComparison) -> Figure | None:
    """Draw each printed figure's line with all testbeds, as multiples of the paper's; None without such a figure."""
    lines = [line for line in expectation_lines(comparison.expectations) if _is_drawn(line)]
    if not lines:
        return None
    figure, (axes,) = new_figure(1, 1, AROUND_IN + LINE_IN * len(lines))
    step = 0.6 / len(comparison.kinds)
    for place, line in enumerate(lines):
        assert line.paper
        off = (line.tolerance or 0.0) / abs(line.paper)
        axes.barh(place, 2 * off, left=1 - off, height=0.8, color=FAINT, zorder=1)
        for number, kind in enumerate(comparison.kinds):
            found = line.figures.get(kind)
            if found is None or found.measured is None:
                continue
            at = place + (number - (len(comparison.kinds) - 1) / 2) * step
            colour = COLOURS.get(kind, OTHERS)
            if found.ci95:
                axes.plot([end / line.paper for end in found.ci95], [at, at], color=colour, linewidth=1.8)
            axes.plot(found.measured / line.paper, at, "o", color=colour, markersize=5.5)
    axes.axvline(1, color=INK, linewidth=1, zorder=1.5)
    axes.set_yticks(range(len(lines)), [textwrap.fill(line.subject, LABEL) for line in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("times the paper's figure")
    draw_word_key(axes, {kind: COLOURS.get(kind, OTHERS) for kind in comparison.kinds})
    return figure


def _is_drawn(line: ExpectationLine) -> bool:
    return bool(line.paper) and any(each.measured is not None for each in line.figures.values())


def _counted(found: dict[str, int]) -> Sequence[tuple[str, int]]:
    return [(word, found[word]) for word in get_args(Word) if found.get(word)]
