# SPDX-License-Identifier: Apache-2.0
"""Figures of DataFrames, each drawn on an axis that the caller gives."""

from typing import TYPE_CHECKING, Any

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes

from analysis.dataframes.degradation import Degradation
from analysis.render.style import INK, JOBS, RC, SOFT, job_colours
from analysis.studies.load_sweep.degradation_figures import draw_curve, use_plain_numbers

if TYPE_CHECKING:
    import pandas as pd

STYLE = {**RC, "axes.prop_cycle": cycler(color=JOBS)}
"""Settings of matplotlib for the look of reports: `matplotlib.pyplot.rcParams.update(STYLE)`."""
POINTS = 160
"""Number of points of a curve."""
SPREAD = 0.5
"""Share of the distance between two variants over which the jobs of one are spread."""


def draw_jobs(axes: Axes, iterations: "pd.DataFrame") -> None:
    """Draw when each job of one trial computes (pale) and communicates (solid), ms, from rows of `iterations`."""
    jobs = list(dict.fromkeys(iterations["job"]))
    colours = job_colours(jobs)
    for place, job in enumerate(jobs):
        rows = iterations[iterations["job"] == job]
        look: dict[str, Any] = {"facecolor": colours[job], "linewidth": 0}
        axes.broken_barh(_spans(rows, "start_ms", "compute_end_ms"), (place - 0.4, 0.8), alpha=0.25, **look)
        axes.broken_barh(_spans(rows, "compute_end_ms", "end_ms"), (place - 0.4, 0.8), **look)
    axes.set_yticks(range(len(jobs)), jobs)
    axes.set_ylim(len(jobs) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def draw_comparison(axes: Axes, comparison: "pd.DataFrame", figure: str = "speedup") -> None:
    """Draw a figure of `compare` for each variant, with its interval; each job has a color.

    `figure` is speedup, mean_ms, median_ms or p99_ms. Rows without it are left out.
    """
    known = comparison.dropna(subset=[figure])
    variants, jobs = (list(dict.fromkeys(known[column])) for column in ("variant", "job"))
    colours = job_colours(jobs)
    for place, job in enumerate(jobs):
        rows = known[known["job"] == job]
        x = rows["variant"].map(variants.index) + SPREAD * ((place + 0.5) / len(jobs) - 0.5)
        axes.vlines(x, rows[f"{figure}_low"], rows[f"{figure}_high"], color=colours[job], linewidth=3, alpha=0.5)
        axes.plot(x, rows[figure], "o", color=colours[job], label=job)
    axes.set_xticks(range(len(variants)), variants)
    axes.set_xlim(-0.6, len(variants) - 0.4)
    axes.grid(visible=False, axis="x")
    if figure == "speedup":
        axes.axhline(1, color=SOFT, linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def draw_degradation(
    axes: Axes, sweep: "pd.DataFrame", model: Degradation, *, until_gbps: float | None = None, colour: str = JOBS[0]
) -> None:
    """Draw a sweep's mean iteration times, s, against load, with their intervals, the model's curve and its 95 % band.

    The axis of times becomes logarithmic. Up to `until_gbps`, Gbit/s, the curve goes on beyond the measured loads,
    dashed.
    """
    measured = np.linspace(sweep["load_gbps"].min(), sweep["load_gbps"].max(), POINTS)
    draw_curve(axes, measured, (model.times_s(measured), *model.band_s(measured)), colour)
    if until_gbps is not None and until_gbps > measured[-1]:
        beyond = np.linspace(measured[-1], until_gbps, POINTS)
        draw_curve(axes, beyond, (model.times_s(beyond), *model.band_s(beyond)), colour, dashed=True)
    axes.vlines(sweep["load_gbps"], sweep["mean_s_low"], sweep["mean_s_high"], color=INK, linewidth=1.5)
    axes.plot(sweep["load_gbps"], sweep["mean_s"], "o", color=colour, markeredgecolor="white", zorder=3)
    axes.set_yscale("log")
    use_plain_numbers(axes.yaxis)
    axes.set_xlabel("cross traffic, Gbit/s")
    axes.set_ylabel("iteration time, s")


def _spans(rows: "pd.DataFrame", begin: str, end: str) -> list[tuple[float, float]]:
    return list(zip(rows[begin], rows[end] - rows[begin], strict=True))
