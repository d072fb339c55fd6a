# SPDX-License-Identifier: Apache-2.0
"""The figures of traffic patterns: a job's bandwidth over time beside its circle."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.projections.polar import PolarAxes

from analysis.reading.traces import TrialTrace
from analysis.render.style import FAINT, INK, JOBS, RC, SOFT, WIDTH, add_note
from analysis.studies.traffic_patterns.study import PatternResult

ITERATIONS = 3
"""Number of iterations over time; the interleaving thesis' Figure 4.1 has three."""
HUB, RIM = 0.55, 1.0


def draw_pattern(pattern: PatternResult, trace: TrialTrace) -> Figure:
    """Draw a job's bandwidth over three iterations, and one iteration around a circle (HotNets'22, Figure 3)."""
    mpl.rcParams.update(RC)
    result = Figure(figsize=(WIDTH, 2.9), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    grid = result.add_gridspec(1, 2, width_ratios=(2.3, 1))
    _draw_time(result.add_subplot(grid[0]), pattern, trace)
    circle = result.add_subplot(grid[1], projection="polar")
    assert isinstance(circle, PolarAxes)
    _draw_circle(circle, pattern)
    return result


def _draw_time(axes: Axes, pattern: PatternResult, trace: TrialTrace) -> None:
    until_ms = ITERATIONS * pattern.iteration_ms
    at_ms = (trace.edges_ms[:-1] + trace.edges_ms[1:]) / 2
    seen = at_ms <= until_ms
    rates = trace.rates[pattern.job][seen]
    axes.fill_between(at_ms[seen], rates, color=JOBS[0], alpha=0.18, linewidth=0)
    axes.plot(at_ms[seen], rates, color=JOBS[0])
    for number in range(ITERATIONS + 1):
        axes.axvline(number * pattern.iteration_ms, color=SOFT, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xlim(0, until_ms)
    axes.set_ylim(0)
    axes.set_xlabel("ms")
    axes.set_ylabel("Gbit/s, headers included")
    axes.set_title(f"{pattern.variant}: {pattern.profile} alone")


def _draw_circle(axes: PolarAxes, pattern: PatternResult) -> None:
    """Draw the ring of an iteration: uncolored where the job computes, the darker the higher the rate."""
    turn = 2 * np.pi / pattern.iteration_ms
    look: dict[str, Any] = {"height": RIM - HUB, "bottom": HUB, "align": "edge", "linewidth": 0}
    axes.bar(0, width=2 * np.pi, color=FAINT, **look)
    highest = max((arc.gbps for arc in pattern.arcs), default=1.0)
    for arc in pattern.arcs:
        shade = 0.3 + 0.7 * arc.gbps / highest
        axes.bar(arc.begin_ms * turn, width=(arc.end_ms - arc.begin_ms) * turn, color=JOBS[0], alpha=shade, **look)
        if (arc.end_ms - arc.begin_ms) * turn > np.pi / 9:
            middle = (arc.begin_ms + arc.end_ms) / 2 * turn
            add_note(axes, middle, (HUB + RIM) / 2, f"{arc.end_ms - arc.begin_ms:.0f} ms", INK, ha="center")
    axes.set_ylim(0, RIM)
    quarters = np.arange(4) / 4
    axes.set_xticks(2 * np.pi * quarters, [f"{part * pattern.iteration_ms:.0f}" for part in quarters])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines["polar"].set_visible(False)
    axes.text(0, 0, f"{pattern.iteration_ms:.0f} ms", ha="center", va="center", color=INK, weight="bold")
