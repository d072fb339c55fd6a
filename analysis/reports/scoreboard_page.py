# SPDX-License-Identifier: Apache-2.0
"""The scoreboard as a page: a picture of all rows, a matrix of rows by testbed, and a part for each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from analysis.render.page import Html, fill_template, render_document, render_part, save_figure
from analysis.render.screen import MARKS
from analysis.render.tables import TONES
from analysis.reports.expectation_comparison import LineFigure, expectation_lines
from analysis.reports.scoreboard import ScoreboardRow, columns_of, heading_of
from analysis.reports.scoreboard_pictures import WIDTH_IN, describe_picture, draw_overview, draw_row
from analysis.reports.scoreboard_table import describe_outcome, describe_sources, describe_testbed, summarize
from roundabout.core.verdict_words import NOT_MEASURED
from roundabout.store.files import write_text


def write_page(lines: Sequence[ScoreboardRow], path: Path) -> Path:
    """Write the page and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, render_scoreboard(lines))
    return path


def render_scoreboard(lines: Sequence[ScoreboardRow]) -> str:
    """Return the page's HTML."""
    kinds = columns_of(lines)
    content = fill_template(
        "scoreboard",
        lead=summarize(lines),
        overview=_image(draw_overview(lines), "All rows: the measured figure over the paper's"),
        kinds=[heading_of(kind) for kind in kinds],
        rows=[_row(line, kinds) for line in lines],
    )
    return render_document("Scoreboard", content)


def table_of(line: ScoreboardRow) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of the table of a row's figures on each testbed that has any."""
    kinds = list(line.testbeds)
    rows = [
        [each.name, " ".join(filter(None, (each.paper_text, each.tolerance_text))), each.note]
        + [_cell(each.figures.get(kind)) for kind in kinds]
        for each in expectation_lines(line.compared)
    ]
    return ["", "paper", "basis", *(heading_of(kind) for kind in kinds)], rows


def _row(line: ScoreboardRow, kinds: Sequence[str]) -> dict[str, Any]:
    headings, rows = table_of(line)
    figure = draw_row(line)
    return {
        "of": line,
        "tones": [TONES[line.testbeds.get(kind, NOT_MEASURED)].value for kind in kinds],
        "cells": [describe_testbed(line, kind) for kind in kinds],
        "outcome": describe_outcome(line),
        "sources": describe_sources(line),
        "picture": _image(figure, describe_picture(line)) if figure else Html(""),
        "headings": headings,
        "table": rows,
    }


def _image(figure: Figure, alt: str) -> Html:
    return render_part("picture", data=save_figure(figure, "svg", Date=None), alt=alt, width=f"{WIDTH_IN * 96:.0f}")


def _cell(figure: LineFigure | None) -> str:
    """Return a testbed's figure with its verdict's mark and its interval; of a finding in words the words."""
    if figure is None or figure.verdict == NOT_MEASURED:
        return ""
    mark, _ = MARKS[TONES[figure.verdict]]
    return f"{mark} {figure.text}" + (f" ({' to '.join(figure.interval)})" if figure.interval else "")
