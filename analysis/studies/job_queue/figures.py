# SPDX-License-Identifier: Apache-2.0
"""The figure of jobs' slowdowns against the experiment's factor."""

from matplotlib.figure import Figure

from analysis.reading.cells import CellId
from analysis.render.style import new_panels, variant_colours
from analysis.studies.job_queue.study import CellSlowdowns, Results

STATISTICS = ("mean", "p90", "p99")


def draw_slowdowns(results: Results, factor: str) -> Figure | None:
    """Draw mean, 90th and 99th percentile against the levels of `factor`, a line a variant."""
    lines: dict[str, list[CellSlowdowns]] = {}
    for cell in results.slowdowns:
        if isinstance(cell.levels.get(factor), int | float):
            lines.setdefault(CellId(cell.levels).without_factor(factor).name, []).append(cell)
    if not lines:
        return None
    colours = variant_colours(list(lines))
    result, axes = new_panels(len(STATISTICS), 3.3, sharey=False)
    for panel, statistic in zip(axes, STATISTICS, strict=True):
        for name, cells in lines.items():
            points = [(cell.levels[factor], found.value) for cell in cells if (found := getattr(cell, statistic))]
            if points:
                panel.plot(*zip(*points, strict=True), "o-", markersize=4, color=colours[name], label=name)
        panel.set_title(statistic)
        panel.set_xlabel(factor.rpartition(".")[2])
    axes[0].set_ylabel("slowdown of jobs")
    handles, names = axes[0].get_legend_handles_labels()
    result.legend(handles, names, loc="outside upper right", ncols=4)
    return result
