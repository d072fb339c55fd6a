# SPDX-License-Identifier: Apache-2.0
"""The figure of iteration times by level."""

import numpy as np
from matplotlib.figure import Figure

from analysis.render.style import draw_disturbed, draw_word_key, job_colours, new_panels
from analysis.studies.levels.study import LevelLine, Results


def draw_times(results: Results) -> Figure | None:
    """Draw median iteration time with its 95 % interval against level, one panel for each job.

    Points of disturbed trials are hollow.
    """
    if not results.lines:
        return None
    jobs = list(dict.fromkeys(line.job for line in results.lines))
    colours = job_colours(list(dict.fromkeys(line.name for line in results.lines)))
    result, axes = new_panels(len(jobs), 3.3)
    for panel, job in zip(axes, jobs, strict=True):
        for line in (each for each in results.lines if each.job == job):
            x, ticks = _places(line, results)
            medians_ms = np.array([cell.median_ms for cell in line.cells])
            panel.plot(x, medians_ms, "o-", markersize=4, color=colours[line.name])
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
        draw_word_key(axes[-1], colours)
    return result


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
