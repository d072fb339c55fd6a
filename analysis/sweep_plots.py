# SPDX-License-Identifier: Apache-2.0
"""The figures of a sweep's report that show more than one analysis. Each function's first line says what it shows."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis.bootstrap import Array
from analysis.degradation import plots
from analysis.degradation.model import rescaled
from analysis.degradation.plots import Series
from analysis.injected import Injected
from analysis.studies import Study
from analysis.style import SOFT, figure, job_colours, note, words
from analysis.verdicts import HEAVY_GBPS, LIGHT_GBPS

BINS = 70
TRACE_MS = 60.0


def degradation(series: Mapping[str, Study]) -> Figure | None:
    """Iteration time against load and against its hyperbola (Figures 3-2 to 3-4), the fluid limits as thin lines."""
    measured = {name: (study, study.sweep) for name, study in series.items() if study.sweep is not None}
    if not measured:
        return None
    result = plots.degradation({name: Series(sweep, study.fit) for name, (study, sweep) in measured.items()})
    plain, hyperbolic = result.axes
    colours = job_colours(list(measured))
    for name, (study, sweep) in measured.items():
        loads_gbps, times_s = study.fluid_line
        for panel, x in ((plain, loads_gbps), (hyperbolic, rescaled(loads_gbps, sweep.link_gbps))):
            panel.plot(x, times_s, color=colours[name], linewidth=0.7, linestyle=(0, (6, 2)), zorder=1.5)
    return result


def fits(groups: Mapping[str, Mapping[str, Study]]) -> list[Figure]:
    """Each sweep with its fit and the one that the thesis printed, two models a figure (Figures 3-6, 3-7, B-3)."""
    panels = {
        model: {
            name: Series(study.sweep, study.fit, study.printed)
            for name, study in group.items()
            if study.sweep is not None and len(study.sweep.levels) > 1
        }
        for model, group in groups.items()
    }
    shown = [(model, group) for model, group in panels.items() if group]
    return [plots.fits(dict(shown[first : first + 2])) for first in range(0, len(shown), 2)]


def congestion(series: Mapping[str, Study]) -> Figure | None:
    """How the congestion points of one setting were found (Figure A-1)."""
    found = {
        name: (study.sweep, study.congestion)
        for name, study in series.items()
        if study.sweep is not None and study.congestion is not None
    }
    return plots.congestion(found) if found else None


def distributions(studies: Sequence[Study], kind: Callable[[Study], str]) -> Figure | None:
    """Cumulative distributions of iteration times at light and at heavy load, by model and `kind` (3-5, B-1)."""
    panels: dict[str, dict[str, dict[str, Array]]] = {}
    for title, load_gbps in (("30 % load", LIGHT_GBPS), ("80 % load", HEAVY_GBPS)):
        for study in studies:
            times_s = study.times_s(load_gbps)
            if len(times_s):
                panels.setdefault(title, {}).setdefault(study.loaded.model, {})[kind(study)] = times_s
    return plots.distributions(panels) if panels else None


def injection(found: Sequence[Injected], link_gbps: float) -> Figure | None:
    """Rates at which cross traffic was sent: an excerpt (Figure B-5), and how often each was seen (Figure 3-8)."""
    if not found:
        return None
    result, (trace, histogram) = figure(1, 2, 3.4)
    colours = job_colours([each.name for each in found])
    edges = np.linspace(0, np.quantile(np.concatenate([each.gbps for each in found]), 0.995), BINS)
    counts = {each.name: _counts(each.gbps, edges) for each in found}
    highest = max(each.max() for each in counts.values())
    for each in found:
        colour = colours[each.name]
        at_ms = (each.at_ns - each.at_ns[0]) / 1e6
        seen = at_ms <= TRACE_MS
        trace.plot(at_ms[seen], each.gbps[seen], color=colour, linewidth=0.9, alpha=0.85)
        histogram.stairs(counts[each.name] / highest, edges, color=colour, fill=True, alpha=0.18)
        histogram.stairs(counts[each.name] / highest, edges, color=colour, linewidth=1.4)
        histogram.axvline(each.gbps.mean(), color=colour, linestyle=":", linewidth=1.2)
    trace.axhline(link_gbps, color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
    note(trace, TRACE_MS, link_gbps, f"the link carries {link_gbps:g}", ha="right", va="bottom", offset=(0, 2))
    trace.set_xlim(0, TRACE_MS)
    trace.set_ylim(0, edges[-1])
    trace.set_xlabel("ms")
    trace.set_ylabel("injection rate, Gbit/s")
    histogram.set_xlim(0, edges[-1])
    histogram.set_ylim(0, 1.05)
    histogram.set_xlabel("injection rate, Gbit/s")
    histogram.set_ylabel("readings, share of the highest bin")
    words(histogram, colours)
    return result


def _counts(gbps: Array, edges: Array) -> Array:
    """Of each bin, as a share of all readings."""
    return np.histogram(gbps, edges)[0] / len(gbps)
