# SPDX-License-Identifier: Apache-2.0
"""The figure of jobs' slowdowns against the experiment's factor."""

from matplotlib.figure import Figure

from analysis.reading.cells import CellId
from analysis.render.style import new_panels, variant_colours
from analysis.studies.job_queue.study import CellSlowdowns, Results

STATISTICS = ("mean", "p90", "p99")
MIN_SPAN = 0.01
"""Least height of a panel, as a slowdown; a lower one would show the rounding errors of equal slowdowns."""


def known_statistics(results: Results) -> list[str]:
    """Return the statistics that some cell has. A 99th percentile takes many jobs."""
    return [name for name in STATISTICS if any(getattr(cell, name) for cell in results.slowdowns)]


def draw_slowdowns(results: Results, factor: str) -> Figure | None:
    """Draw each known statistic against the levels of `factor`, a line a variant; None without such levels."""
    lines: dict[str, list[CellSlowdowns]] = {}
    for cell in results.slowdowns:
        if isinstance(cell.levels.get(factor), int | float):
            lines.setdefault(CellId(cell.levels).without_factor(factor).name, []).append(cell)
    if not lines:
        return None
    colours = variant_colours(list(lines))
    statistics = known_statistics(results)
    result, axes = new_panels(len(statistics), 3.3, sharey=False)
    for panel, statistic in zip(axes, statistics, strict=True):
        for name, cells in lines.items():
            points = [(cell.levels[factor], found.value) for cell in cells if (found := getattr(cell, statistic))]
            if points:
                panel.plot(*zip(*points, strict=True), "o-", markersize=4, color=colours[name], label=name)
        low, high = panel.get_ylim()
        if high - low < MIN_SPAN:
            panel.set_ylim((low + high - MIN_SPAN) / 2, (low + high + MIN_SPAN) / 2)
        panel.set_title(statistic)
        panel.set_xlabel(factor.rpartition(".")[2])
    axes[0].set_ylabel("slowdown of jobs")
    handles, names = axes[0].get_legend_handles_labels()
    result.legend(handles, names, loc="outside upper right", ncols=4)
    return result
