# SPDX-License-Identifier: Apache-2.0
"""The figures of the study of loads. Each function's first line names the content."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.papers.salamy import HEAVY_GBPS, LIGHT_GBPS
from analysis.reading.cells import CellId
from analysis.reading.congestion.send_rates import SendRates, skewness
from analysis.reading.cross_traffic.load_sweep_data import jobs_under_load
from analysis.reading.cross_traffic.planned_flows import WIDTH_MS, PlannedFlows
from analysis.render.style import JOBS, SOFT, draw_level, draw_word_key, job_colours, new_figure
from analysis.statistics.degradation.model import hyperbolic_load
from analysis.statistics.intervals import Array
from analysis.studies.load_sweep import degradation_figures
from analysis.studies.load_sweep.degradation_figures import CurveSeries
from analysis.studies.load_sweep.study import SweepResult
from roundabout.store import Run

BINS = 70
EXCERPT_MS = 60.0
"""Length of the drawn excerpt of traffic, ms: six bursts."""
FLOW, BURST = JOBS[:2]
ORDER = "#d8c24a"

Groups = dict[str, dict[str, SweepResult]]


def by_kind(sweeps: Sequence[SweepResult]) -> Groups:
    """Return the sweeps by kind of traffic and transport, and within a kind by model."""
    return _grouped(sweeps, lambda each: each.kind, lambda each: each.model)


def by_model(sweeps: Sequence[SweepResult]) -> Groups:
    """Return the sweeps by model, and within a model by kind of traffic and transport."""
    return _grouped(sweeps, lambda each: each.model, lambda each: each.kind)


def draw_degradation(group: Mapping[str, SweepResult]) -> Figure | None:
    """Draw iteration time against load and C / (C - BW) (Figures 3-2 to 3-4), with flow-level limits as thin lines."""
    series = {name: CurveSeries.from_sweep(sweep) for name, sweep in group.items() if sweep.why_no_sweep is None}
    if not series:
        return None
    result = degradation_figures.draw_degradation(series)
    plain, hyperbolic = result.axes
    colours = job_colours(list(series))
    for name, each in series.items():
        line = group[name].fluid_line
        loads_gbps = np.array(line.loads_gbps)
        times_s = np.array([np.inf if time_s is None else time_s for time_s in line.times_s])
        for panel, x in ((plain, loads_gbps), (hyperbolic, hyperbolic_load(loads_gbps, each.link_gbps))):
            panel.plot(x, times_s, color=colours[name], linewidth=0.7, linestyle=(0, (6, 2)), zorder=1.5)
    return result


def draw_fits(groups: Groups) -> list[Figure]:
    """Draw each sweep with its fit and Salamy's printed fit, two models in a figure (Figures 3-6, 3-7, B-3)."""
    panels = {
        model: {
            name: CurveSeries.from_sweep(sweep)
            for name, sweep in group.items()
            if sweep.why_no_sweep is None and len(sweep.levels) > 1
        }
        for model, group in groups.items()
    }
    shown = [(model, group) for model, group in panels.items() if group]
    return [degradation_figures.draw_fits(dict(shown[first : first + 2])) for first in range(0, len(shown), 2)]


def draw_congestion(group: Mapping[str, SweepResult]) -> Figure | None:
    """Draw how the congestion points of one kind of traffic are found (Figure A-1); None without any."""
    found = {
        name: (CurveSeries.from_sweep(sweep), sweep.congestion) for name, sweep in group.items() if sweep.congestion
    }
    return degradation_figures.draw_congestion(found) if found else None


def draw_distributions(run: Run, sweeps: Sequence[SweepResult], kind: Callable[[SweepResult], str]) -> Figure | None:
    """Draw distributions of iteration times at light and heavy load, by model and `kind` (Figures 3-5 and B-1)."""
    panels: dict[str, dict[str, dict[str, Array]]] = {}
    samples = {each.id: each for each in jobs_under_load(run)}
    for title, load_gbps in (("30 % load", LIGHT_GBPS), ("80 % load", HEAVY_GBPS)):
        for sweep in sweeps:
            times_s = samples[CellId(sweep.setting), sweep.job].times_s(load_gbps)
            if len(times_s):
                panels.setdefault(title, {}).setdefault(sweep.model, {})[kind(sweep)] = times_s
    return degradation_figures.draw_distributions(panels) if panels else None


def draw_planned_flows(load: PlannedFlows) -> Figure:
    """Draw the planned flows of a burst load over time, and its bursts (Figure B-4)."""
    result, (panel,) = new_figure(1, 1, 3.0)
    seen = (load.at_ms >= 0) & (load.at_ms < EXCERPT_MS)
    for begin_ms in load.bursts_ms[load.bursts_ms < EXCERPT_MS]:
        panel.axvspan(begin_ms, begin_ms + WIDTH_MS, color=BURST, alpha=0.45, linewidth=0)
    panel.plot(load.at_ms[seen], load.megabytes[seen], color=ORDER, linewidth=0.9)
    panel.plot(load.at_ms[seen], load.megabytes[seen], "o", color=FLOW, markersize=4.5, markeredgecolor="white")
    panel.set_xlim(0, EXCERPT_MS)
    panel.set_yscale("log")
    degradation_figures.use_plain_numbers(panel.yaxis)
    panel.set_xlabel("ms")
    panel.set_ylabel("flow, MB")
    draw_word_key(panel, {"flows": FLOW, "their order": ORDER, "bursts": BURST})
    return result


def draw_injection(found: Sequence[SendRates], link_gbps: float) -> Figure | None:
    """Draw send rates of cross traffic: an excerpt (Figure B-5), and their frequencies (Figure 3-8)."""
    if not found:
        return None
    result, panels = new_figure(len(found), 2, 0.6 + 2.3 * len(found), sharex="col")
    top_gbps = float(np.quantile(np.concatenate([each.gbps for each in found]), 0.995))
    colours = job_colours([each.name for each in found])
    for trace, histogram, each in zip(panels[::2], panels[1::2], found, strict=True):
        _excerpt(trace, each, link_gbps, colours[each.name])
        trace.set_ylim(0, top_gbps)
        _readings(histogram, each, np.linspace(0, top_gbps, BINS), colours[each.name])
    panels[-2].set_xlabel("ms")
    panels[-1].set_xlabel("injection rate, Gbit/s")
    return result


def _excerpt(panel: Axes, each: SendRates, link_gbps: float, colour: str) -> None:
    at_ms = (each.at_ns - each.at_ns[0]) / 1e6
    seen = at_ms <= EXCERPT_MS
    panel.plot(at_ms[seen], each.gbps[seen], color=colour, linewidth=0.9)
    panel.axhline(each.gbps.mean(), color=SOFT, linewidth=1.2)
    panel.set_xlim(0, EXCERPT_MS)
    draw_level(panel, link_gbps, f"the link carries {link_gbps:g}")
    panel.set_title(each.name)
    panel.set_ylabel("Gbit/s")


def _readings(panel: Axes, each: SendRates, edges: Array, colour: str) -> None:
    skews = []
    for (way, gbps), line in zip(each.readings_gbps.items(), degradation_figures.STYLES, strict=False):
        share = np.histogram(gbps, edges)[0] / len(gbps)
        panel.stairs(share, edges, color=colour, linewidth=1.4, linestyle=line)
        skews.append(f"by {way} {skewness(gbps[gbps <= edges[-1]]):+.2f}")
    panel.axvline(each.gbps.mean(), color=SOFT, linewidth=1.2)
    panel.set_xlim(0, edges[-1])
    panel.set_ylim(bottom=0)
    panel.set_ylabel("share of readings")
    draw_word_key(panel, {f"skewness {', '.join(skews)}": colour})


def _grouped(
    sweeps: Sequence[SweepResult], outer: Callable[[SweepResult], str], inner: Callable[[SweepResult], str]
) -> Groups:
    groups: Groups = {}
    for sweep in sweeps:
        group = groups.setdefault(outer(sweep), {})
        name = inner(sweep)
        group[sweep.name if name in group else name] = sweep
    return groups
