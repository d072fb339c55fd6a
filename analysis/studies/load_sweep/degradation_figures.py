# SPDX-License-Identifier: Apache-2.0
"""Figures of iteration time against load. Each function draws one; its first line names the content."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from analysis.render.style import INK, add_note, draw_disturbed, draw_word_key, job_colours, new_figure
from analysis.statistics.degradation.model import hyperbolic_load, iteration_time_s
from analysis.statistics.intervals import Array
from analysis.studies.load_sweep.study import BAND_POINTS, CongestionResult, EquationResult, FitResult, SweepResult

DASHES: Any = (0, (4, 3))
STYLES: tuple[Any, ...] = ("-", DASHES, ":", "-.")
KEY_LINE = 0.17
"""Height of a line of text in the keys below fits, inches."""


@dataclass(frozen=True, eq=False)
class CurveSeries:
    """One job's iteration times by measured load (rising), the fit to them, and Salamy's printed fit.

    If there are too few iterations for a 99 % tail, the longest iteration replaces it. `disturbed` marks the levels
    with only disturbed trials.
    """

    loads_gbps: Array
    means_s: Array
    tails_s: Array
    link_gbps: float
    fit: FitResult | None = None
    printed: EquationResult | None = None
    disturbed: tuple[bool, ...] = ()

    @classmethod
    def from_sweep(cls, sweep: SweepResult) -> "CurveSeries":
        """Return the series of a sweep."""
        levels = sorted(sweep.levels, key=lambda level: level.payload_gbps)
        loads_gbps, means_s = (
            np.array([getattr(level, name) for level in levels]) for name in ("payload_gbps", "mean_s")
        )
        tails_s = np.array([level.max_s if level.p99_s is None else level.p99_s for level in levels])
        printed = sweep.paper.fit if sweep.paper else None
        disturbed = tuple(level.disturbance is not None for level in levels)
        return cls(loads_gbps, means_s, tails_s, sweep.link_gbps, sweep.fit, printed, disturbed)

    @property
    def along_gbps(self) -> Array:
        """Return loads to draw a curve through, from the first level to the last."""
        return np.linspace(self.loads_gbps[0], self.loads_gbps[-1], BAND_POINTS)


def draw_degradation(series: Mapping[str, CurveSeries]) -> Figure:
    """Draw means, tails and fits of iteration time against load, and against C / (C - BW) (Figures 3-2 to 3-4)."""
    result, (plain, hyperbolic) = new_figure(1, 2, 4.0, sharey=True)
    colours = job_colours(list(series))
    for name, each in series.items():
        for panel, axis in ((plain, _load), (hyperbolic, partial(hyperbolic_load, link_gbps=each.link_gbps))):
            _draw_means(panel, each, colours[name], axis)
            if each.fit is not None:
                _draw_fit(panel, each.fit, colours[name], axis)
    _time_axis(plain)
    _load_axis(plain)
    hyperbolic.set_xlabel("C / (C - BW)")
    hyperbolic.set_xlim(left=1)
    draw_word_key(hyperbolic, colours)
    return result


def draw_fits(panels: Mapping[str, Mapping[str, CurveSeries]]) -> Figure:
    """Draw each series with its fit and R^2, and Salamy's fit dashed, one panel for a group (Figures 3-7, B-2, B-3)."""
    result, axes = new_figure(1, len(panels), 5.2)
    key_lines = []
    colours = job_colours(list(dict.fromkeys(name for group in panels.values() for name in group)))
    for panel, (title, group) in zip(axes, panels.items(), strict=True):
        for name, each in group.items():
            _draw_means(panel, each, colours[name], _load)
            if each.fit is not None:
                _draw_fit(panel, each.fit, colours[name], _load)
            equation = f": {_equation(each.fit)}" if each.fit is not None else ""
            panel.plot([], [], "-" if equation else "o", color=colours[name], label=name + equation)
            if each.printed is not None:
                _draw_printed_fit(panel, each.printed, each, colours[name])
        _time_axis(panel)
        _load_axis(panel)
        panel.set_title(title)
        key = panel.legend(loc="upper left", bbox_to_anchor=(0, -0.16), fontsize=8)
        key_lines.append(sum(len(text.get_text().splitlines()) for text in key.get_texts()))
    result.set_figheight(max(5.2, 3.7 + KEY_LINE * max(key_lines)))  # or a long key would leave no room for the panels
    return result


def draw_congestion(series: Mapping[str, tuple[CurveSeries, CongestionResult]]) -> Figure:
    """Draw how congestion points are found: line, tangent, and the level nearest to their crossing (Figure A-1).

    The bar through a crossing is its 95 % interval.
    """
    result, (panel,) = new_figure(1, 1, 4.2)
    colours = job_colours(list(series))
    for name, (swept, point) in series.items():
        panel.plot(swept.loads_gbps, swept.means_s, "o-", markersize=4, color=colours[name], linewidth=1, clip_on=False)
        _mark_disturbed(panel, swept, colours[name], _load)
        _construction(panel, swept, point, colours[name])
    _time_axis(panel)
    means_s = np.concatenate([swept.means_s for swept, _ in series.values()])
    panel.set_ylim(means_s.min() * 0.75, means_s.max() * 1.2)
    _load_axis(panel)
    draw_word_key(panel, colours)
    return result


def draw_distributions(panels: Mapping[str, Mapping[str, Mapping[str, Array]]]) -> Figure:
    """Draw cumulative distributions of iteration times, one panel for each load (Figures 3-5 and B-1).

    `panels` maps titles to models (colors), models to kinds of traffic or transport (dashes), and kinds to times, s.
    Panels whose times span more than a decade get a logarithmic axis, as Salamy's panel of the heavier load has.
    """
    result, axes = new_figure(1, len(panels), 3.8, sharey=True)
    colours = job_colours(list(dict.fromkeys(model for shown in panels.values() for model in shown)))
    kinds = dict.fromkeys(kind for shown in panels.values() for each in shown.values() for kind in each)
    styles = dict(zip(kinds, STYLES, strict=False))
    for panel, (title, shown) in zip(axes, panels.items(), strict=True):
        for model, each in shown.items():
            for kind, times_s in each.items():
                share = np.arange(1, len(times_s) + 1) / len(times_s)
                panel.step(np.sort(times_s), share, where="post", color=colours[model], linestyle=styles[kind])
        low, high = panel.dataLim.intervalx
        if high > 10 * low:
            panel.set_xscale("log")
            use_plain_numbers(panel.xaxis)
        panel.set_title(title)
        panel.set_xlabel("iteration time, s")
    axes[0].set_ylim(0, 1.02)
    axes[0].set_ylabel("share of iterations")
    draw_word_key(axes[-1], colours)
    for kind, style in styles.items():
        axes[-1].plot([], [], color=INK, linestyle=style, label=kind)
    axes[-1].legend(loc="lower right")
    return result


def draw_curve(
    panel: Axes, x: Array, times_s: tuple[Array, Array, Array], colour: str, *, dashed: bool = False
) -> None:
    """Draw a fitted curve with its 95 % band, paler where `dashed`.

    `times_s` are the curve's times and the ends of the band, each of shape (points,).
    """
    curve_s, low_s, high_s = times_s
    panel.fill_between(x, low_s, high_s, color=colour, alpha=0.08 if dashed else 0.16, linewidth=0)
    panel.plot(x, curve_s, color=colour, linestyle=DASHES if dashed else "-")


def use_plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with 0.5, 1, 2 and the like instead of powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


def _load(loads_gbps: Array) -> Array:
    return loads_gbps


def _draw_means(panel: Axes, series: CurveSeries, colour: str, axis: Callable[[Array], Array]) -> None:
    """Draw means as points, with a bar up to the tail. Points of disturbed trials are hollow."""
    x, means_s = axis(series.loads_gbps), series.means_s
    panel.vlines(x, means_s, np.maximum(series.tails_s, means_s), color=colour, linewidth=1.2, alpha=0.6)
    look: dict[str, Any] = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.5}
    panel.plot(x, means_s, "o", color=colour, clip_on=False, zorder=3, **look)
    _mark_disturbed(panel, series, colour, axis)


def _mark_disturbed(panel: Axes, series: CurveSeries, colour: str, axis: Callable[[Array], Array]) -> None:
    points = zip(axis(series.loads_gbps), series.means_s, series.disturbed, strict=False)
    draw_disturbed(panel, [(x, mean_s) for x, mean_s, disturbed in points if disturbed], colour)


def _draw_fit(panel: Axes, fit: FitResult, colour: str, axis: Callable[[Array], Array]) -> None:
    """Draw the curve over the measured loads, with its 95 % band."""
    loads_gbps, band = np.array(fit.band.loads_gbps), fit.band
    low_s, high_s = (np.array([np.inf if end is None else end for end in side]) for side in (band.low_s, band.high_s))
    draw_curve(panel, axis(loads_gbps), (fit.times_s(loads_gbps), low_s, high_s), colour)


def _draw_printed_fit(panel: Axes, printed: EquationResult, series: CurveSeries, colour: str) -> None:
    loads_gbps = series.along_gbps
    times_s = iteration_time_s(loads_gbps, printed.a_s, printed.b, printed.n, printed.capacity_gbps)
    panel.plot(loads_gbps, times_s, color=colour, linestyle=DASHES, linewidth=1.1, label=f"Salamy, {printed.source}")


def _equation(fit: FitResult) -> str:
    a_s, b, n, capacity = fit.a_s.value, fit.b.value, fit.n.value, fit.capacity_gbps.value
    power = "" if n == 1 else rf"^{{{n:.2g}}}"
    formula = rf"${a_s:.3g}\,\exp({b:.4g}/({capacity:.4g}-BW){power})$"
    return f"{formula}\n$R^2$ {fit.r_squared.log:.3f} log, {fit.r_squared.linear:.3f} linear"


def _construction(panel: Axes, series: CurveSeries, point: CongestionResult, colour: str) -> None:
    bottom, top = series.means_s.min(), series.means_s.max()
    along = series.along_gbps
    for line in (point.linear, point.tangent):
        times_s = line.times_s(along)
        shown = (times_s >= bottom * 0.85) & (times_s <= top)
        panel.plot(along[shown], times_s[shown], color=colour, linestyle=":", linewidth=1.4)
    drop = [bottom / 10, point.time_s, point.time_s]
    panel.plot([point.load_gbps, point.load_gbps, 0], drop, color=colour, linewidth=0.7)
    if point.crossing_ci95_gbps is not None:
        crossing_s = point.linear.times_s(np.array([point.crossing_gbps] * 2))
        panel.plot(point.crossing_ci95_gbps, crossing_s, color=colour, linewidth=7, alpha=0.25, solid_capstyle="butt")
    text = f"{point.load_gbps:.1f} Gbit/s, {point.time_s:.3g} s: {point.demand_mb:.0f} MB"
    add_note(panel, point.load_gbps, point.time_s, text, colour, ha="right", va="bottom", offset=(-6, 6))


def _load_axis(panel: Axes) -> None:
    panel.set_xlim(left=0)
    panel.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10]))
    panel.set_xlabel("cross traffic BW, Gbit/s")


def _time_axis(panel: Axes) -> None:
    panel.set_yscale("log")
    panel.set_ylabel("iteration time, s")
    use_plain_numbers(panel.yaxis)
