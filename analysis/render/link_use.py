# SPDX-License-Identifier: Apache-2.0
"""Use of shared links over time, by the samples of hosts' counters."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis.reading.cells import jobs_of
from analysis.reading.traces import Trace
from analysis.render.style import figure, job_colours, level, words
from roundabout.spec import Link, TrialSpec

SHOWN_MS = 2400.0


def link_use(traces: Sequence[Trace], link: str | None = None, *, settled: bool = False) -> Figure:
    """A link's use by the jobs that share it, stacked, one row a trial, beside what it carries.

    HotNets'22, Figures 2a and 2b, and the interleaving thesis' Figure 4.16. The link is the bottleneck unless named;
    shown are the first `SHOWN_MS`, or, once settled, the last in which all jobs run.
    """
    result, axes = figure(len(traces), 1, 1.0 + 1.45 * len(traces), sharex=True)
    jobs = jobs_of(trace.cell for trace in traces)
    colours, drawn = job_colours(jobs), set[str]()
    for panel, trace in zip(axes, traces, strict=True):
        topology = trace.cell.spec.topology
        on = next((each for each in topology.links if each.name == link), topology.bottleneck)
        sharing = [job for job in trace.rates if _crosses(trace.cell.spec, job, on)]
        until_ms = min(spans[-1, 1] for spans in trace.spans.values()) if settled else min(SHOWN_MS, trace.edges_ms[-1])
        middles = (trace.edges_ms[:-1] + trace.edges_ms[1:]) / 2 - max(until_ms - SHOWN_MS, 0.0)
        seen = (middles >= 0) & (middles <= SHOWN_MS)
        if sharing:
            rates = [np.nan_to_num(trace.rates[job][seen]) for job in sharing]
            panel.stackplot(middles[seen], rates, colors=[colours[job] for job in sharing], alpha=0.9, linewidth=0)
        drawn |= {*sharing}
        panel.set_xlim(0, min(until_ms, SHOWN_MS))
        panel.set_ylim(0, 1.35 * on.payload_rate_gbps)
        level(panel, on.payload_rate_gbps, f"{on.name} carries {on.payload_rate_gbps:g}" if panel is axes[0] else "")
        panel.set_title(trace.cell.name)
        panel.set_ylabel("Gbit/s")
    words(axes[0], {job: colours[job] for job in jobs if job in drawn})
    axes[-1].set_xlabel("ms, the last in which all jobs run" if settled else "ms since the start")
    return result


def _crosses(spec: TrialSpec, job: str, link: Link) -> bool:
    return any(hop.link == link for pair in spec.jobs[job].pairs for hop in spec.topology.path(*pair))
