# SPDX-License-Identifier: Apache-2.0
"""The figure of iteration times by level."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.render.style import draw_disturbed, new_panels, variant_colours
from analysis.studies.levels.study import LevelLine, Results

DASHED: Any = (0, (4, 3))
ROW_LETTERS, HANDLE_LETTERS = 110, 8
"""Number of letters for which a row of the key has room, and the number that a name's line and margins take."""


def draw_times(results: Results) -> Figure | None:
    """Draw median iteration time with its 95 % interval against level, one panel for each job.

    Points of disturbed trials are hollow. A line of one level, where others have several, is a point on a dashed line.
    """
    if not results.lines:
        return None
    jobs = list(dict.fromkeys(line.job for line in results.lines))
    colours = variant_colours([line.name for line in results.lines])
    most_levels = max(len(line.cells) for line in results.lines)
    result, axes = new_panels(len(jobs), 3.3, sharey=False)
    for panel, job in zip(axes, jobs, strict=True):
        for line in (each for each in results.lines if each.job == job):
            x, ticks = _places(line, results)
            medians_ms = np.array([cell.median_ms for cell in line.cells])
            panel.plot(x, medians_ms, "o-", markersize=4, color=colours[line.name])
            if len(line.cells) == 1 < most_levels:
                panel.axhline(medians_ms[0], color=colours[line.name], linewidth=1, linestyle=DASHED)
            hollow = [
                (at, cell.median_ms) for at, cell in zip(x, line.cells, strict=True) if cell.disturbance is not None
            ]
            draw_disturbed(panel, hollow, colours[line.name])
            for at, cell in zip(x, line.cells, strict=True):
                if cell.median_ci95_ms:
                    panel.plot([at, at], cell.median_ci95_ms, color=colours[line.name], alpha=0.5)
            if ticks:
                panel.set_xticks(range(len(ticks)), ticks)
        panel.set_title(job)
        panel.set_xlabel(results.factor)
    axes[0].set_ylabel("median iteration time, ms")
    if len(colours) > 1:
        _draw_key(result, colours)
    return result


def _draw_key(figure: Figure, colours: Mapping[str, str]) -> None:
    """Draw the key of all panels above them, with as many names in a row as the figure's width has room for."""
    lines = [Line2D([], [], color=colour, marker="o", markersize=4, label=name) for name, colour in colours.items()]
    columns = max(ROW_LETTERS // (max(map(len, colours)) + HANDLE_LETTERS), 1)
    figure.legend(handles=lines, loc="outside upper right", ncols=min(columns, len(lines)))


def _places(line: LevelLine, results: Results) -> tuple[list[float], list[str]]:
    """Return the places of levels on the x-axis.

    Numbers at their value, names side by side in the experiment's order.
    """
    levels = [cell.levels.get(results.factor, "") for cell in line.cells]
    known = [cell.levels.get(results.factor, "") for each in results.lines for cell in each.cells]
    if not any(isinstance(level, str) for level in known):
        return [float(level) for level in levels], []
    names = list(dict.fromkeys(map(str, known)))
    return [float(names.index(str(level))) for level in levels], names
