# SPDX-License-Identifier: Apache-2.0
"""Use of shared links over time, from samples of hosts' counters."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.reading.cells import jobs_of
from analysis.reading.traces import TrialTrace
from analysis.render.style import draw_level, draw_word_key, job_colours, new_figure
from roundabout.spec import Link

SHOWN_MS = 2400.0


def draw_link_use(traces: Sequence[TrialTrace], *, settled: bool = False) -> Figure | None:
    """Draw the stacked rates of the jobs that share a link, with its capacity, one panel for each trace.

    As in HotNets'22, Figures 2a and 2b, and the interleaving thesis' Figure 4.16. Panels show the first `SHOWN_MS`, or
    with `settled` the last ones in which all jobs run. Traces without two bins are left out; None if none
    is left.
    """
    traces = [trace for trace in traces if trace.has_course]
    if not traces:
        return None
    result, axes = new_figure(len(traces), 1, 1.0 + 1.45 * len(traces), sharex=True)
    colours = job_colours(jobs_of(trace.cell for trace in traces))
    named: list[Link] = []
    for panel, trace in zip(axes, traces, strict=True):
        until_ms = min(spans[-1, 1] for spans in trace.spans.values()) if settled else min(SHOWN_MS, trace.edges_ms[-1])
        _stack(panel, trace, until_ms, colours)
        draw_level(panel, trace.capacity_gbps, trace.describe_capacity() if trace.link not in named else "")
        named.append(trace.link)
    crossing = {job for trace in traces for job in trace.rates}
    draw_word_key(axes[0], {job: colour for job, colour in colours.items() if job in crossing})
    axes[-1].set_xlabel("ms, the last in which all jobs run" if settled else "ms since the start")
    return result


def usual_most(rates_gbps: npt.NDArray[np.float64]) -> float:
    """Return the end of an axis that all but 1 % of rates fit below, those over several NICs of a host too."""
    return float(np.nanquantile(rates_gbps, 0.99)) * 1.05


def _stack(panel: Axes, trace: TrialTrace, until_ms: float, colours: Mapping[str, str]) -> None:
    """Draw each job's rate in the `SHOWN_MS` before an instant."""
    middles_ms = (trace.edges_ms[:-1] + trace.edges_ms[1:]) / 2 - max(until_ms - SHOWN_MS, 0.0)
    seen = (middles_ms >= 0) & (middles_ms <= SHOWN_MS)
    rates = {job: np.nan_to_num(each[seen]) for job, each in trace.rates.items()}
    look: Any = {"colors": [colours[job] for job in rates], "alpha": 0.9, "linewidth": 0}
    panel.stackplot(middles_ms[seen], [*rates.values()], **look)
    panel.set_xlim(0, min(until_ms, SHOWN_MS))
    panel.set_ylim(0, max(1.35 * trace.capacity_gbps, usual_most(sum(rates.values(), np.zeros(1)))))
    panel.set_title(trace.name)
    panel.set_ylabel("Gbit/s")
