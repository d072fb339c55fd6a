# SPDX-License-Identifier: Apache-2.0
"""The figures of a report. Each function draws one and returns it; its first line names the content.

The cells of a figure differ only in the variant, whose level names them.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.expectations.results import JobCell
from analysis.reading.cells import CellTrials, jobs_of
from analysis.reading.congestion.marks import JobMarks
from analysis.reading.traces import TrialTrace, mean_per_iteration, median_trial
from analysis.render.link_use import usual_most
from analysis.render.style import (
    BOTH,
    INK,
    ROW,
    SOFT,
    add_note,
    draw_level,
    draw_word_key,
    iteration_ticks,
    job_colours,
    new_figure,
    new_panels,
    variant_colours,
)
from analysis.statistics.cumulative_counter import Floats
from analysis.statistics.intervals import stack_to_shortest
from roundabout.core.milliseconds import format_ms

MEGA = 1e6
LETTERS = 120
"""Number of letters that fit above a row of panels."""
DASHES = ("-", (0, (3, 1.5)), ":", "-.")
"""Dashes of jobs' lines, by a job's position in its experiment."""

Marks = Mapping[str, JobMarks]
"""The ECN marks of one cell, by job."""


def draw_first_iterations(trials_by_cell: Sequence[Sequence[TrialTrace]], iterations: int = 3) -> Figure | None:
    """Draw each job's bandwidth in the first iterations, by variant and link (HotNets'22, Figures 1b and 1c).

    Repetitions are thin lines, and the median repetition is a thick line. Trials are left out if their first iterations
    have fewer than two bins; None if no others are left.
    """
    trials_by_cell = [trials for trials in trials_by_cell if _has_rates(median_trial(trials), iterations)]
    if not trials_by_cell:
        return None
    result, axes = new_panels(len(trials_by_cell), 3.0)
    colours = job_colours(_jobs([trials[0] for trials in trials_by_cell]))
    top_gbps = 0.0
    for place, (panel, trials) in enumerate(zip(axes, trials_by_cell, strict=True)):
        trace = median_trial(trials)
        until = _end_ms(trace, iterations)
        panel.set_xlim(0, until)
        at_ms = _middles_ms(trace)
        seen = at_ms <= until
        for job, rates in trace.rates.items():
            panel.fill_between(at_ms[seen], rates[seen], color=colours[job], alpha=0.14, linewidth=0, gid=job)
            panel.plot(at_ms[seen], rates[seen], color=colours[job], gid=f"{job}, middle repetition")
        _draw_other_repetitions(panel, [each for each in trials if each is not trace], until, colours)
        _mean_while_all_send(panel, trace, trials, colours)
        top_gbps = max(top_gbps, trace.capacity_gbps * 1.22, *(usual_most(rates) for rates in trace.rates.values()))
        panel.set_ylim(0, top_gbps)
        draw_level(panel, trace.capacity_gbps, trace.describe_capacity())
        panel.set_title(trace.name)
        # Names of transports that are too long for a panel are in the section Provenance.
        if len(trace.name + trace.cell.transports) <= LETTERS / min(len(trials_by_cell), ROW):
            draw_word_key(panel, {trace.cell.transports: SOFT}, weight="normal")
        panel.set_xlabel("ms since the start")
        if place % ROW == 0:
            panel.set_ylabel("sent by each job, Gbit/s")
    return result


def draw_sliding(traces: Sequence[TrialTrace]) -> Figure | None:
    """Draw communication over time, with a row for each iteration of the link's first job, by variant and link.

    Times in which two jobs send at once are dark. Trials of one iteration are left out; None if no others are left.
    """
    traces = [trace for trace in traces if len(next(iter(trace.spans.values()))) > 1]
    if not traces:
        return None
    result, axes = new_panels(len(traces), 4.6, sharex=True)
    colours = job_colours(_jobs(traces))
    for place, (panel, trace) in enumerate(zip(axes, traces, strict=True)):
        rows = _rows(trace)
        for job, bars in rows.items():
            _bars(panel, bars, colours[job])
        for one, other in combinations(rows.values(), 2):
            _bars(panel, _intersections(one, other), BOTH)
        count = len(next(iter(trace.spans.values())))
        panel.set_ylim(count + 0.5, 0.5)
        panel.yaxis.set_major_locator(iteration_ticks())
        panel.grid(axis="y", visible=False)
        panel.set_title(trace.name)
        panel.set_xlabel(f"ms since {next(iter(trace.spans))} began its iteration")
        if place % ROW == 0:
            panel.set_ylabel("iteration")
    _job_key(axes[min(len(axes), ROW) - 1], _jobs(traces), both=True)
    return result


def draw_distributions(cells: Sequence[CellTrials], marks: Sequence[Marks], found: Sequence[JobCell]) -> Figure | None:
    """Draw cumulative distributions of iteration times (HotNets'22, Figure 1d), and of marks if they are known.

    Lines are for variants and jobs, over all repetitions. Both panels are arranged as in the interleaving thesis,
    Figure 4.13. None if all jobs have one iteration, which has no distribution.
    """
    if all(np.concatenate(cell.repetitions(job)).size == 1 for cell in cells for job in cell.times):
        return None
    result, (times, *others) = new_figure(1, 2 if any(marks) else 1, 3.6, sharey=True)
    _distribution(times, cells, [{job: cell.repetitions(job) for job in cell.times} for cell in cells])
    _fluid_lines(times, found)
    times.set_xlabel("iteration time, ms")
    times.set_ylabel("share of iterations")
    for panel in others:
        _distribution(panel, cells, [{job: own.known for job, own in each.items()} for each in marks])
        panel.set_xlabel("ECN marks per iteration")
    _key([times, *others][-1], cells)
    return result


def draw_over_iterations(cells: Sequence[CellTrials], found: Sequence[JobCell]) -> Figure | None:
    """Draw iteration time against iteration number, with repetitions as thin lines and their median as a thick line.

    Jobs of one iteration are left out; None if no others are left.
    """
    jobs = [job for job in jobs_of(cells) if _longest([c.repetitions(job) for c in cells if job in c.times]) > 1]
    if not jobs:
        return None
    result, axes = new_panels(len(jobs), 3.3)
    colours = variant_colours([cell.name_in_group for cell in cells])
    for place, (panel, job) in enumerate(zip(axes, jobs, strict=True)):
        shown = [cell for cell in cells if job in cell.times]
        for cell in shown:
            _draw_series(panel, cell.repetitions(job), colours[cell.name_in_group])
        panel.set_xlim(1, _longest([cell.repetitions(job) for cell in shown]))
        own = [each for each in found if each.job == job]
        if (fair_ms := _common_limit(own, "fair_ms")) is not None:
            draw_level(panel, fair_ms, f"fluid, fair {format_ms(fair_ms, 0)}")
        if (interleaved_ms := _common_limit(own, "interleaved_ms")) is not None:
            draw_level(panel, interleaved_ms, f"fluid, interleaved {format_ms(interleaved_ms, 0)}", below=True)
        panel.xaxis.set_major_locator(iteration_ticks())
        panel.margins(y=0.12)
        panel.set_title(job)
        panel.set_xlabel("iteration")
        if place % ROW == 0:
            panel.set_ylabel("iteration time, ms")
    draw_word_key(axes[min(len(axes), ROW) - 1], colours)
    return result


def draw_marks_over_iterations(cells: Sequence[CellTrials], marks: Sequence[Marks]) -> Figure | None:
    """Draw ECN marks of each iteration, one panel for each job (the interleaving thesis, Figure 4.14); None if unknown.

    Repetitions are thin lines, and their median is a thick line. Jobs of one iteration are left out.
    """
    known = dict.fromkeys(job for each in marks for job in each)
    jobs = [job for job in known if _longest([each[job].repetitions for each in marks if job in each]) > 1]
    if not jobs:
        return None
    result, axes = new_panels(len(jobs), 3.3)
    colours = variant_colours([cell.name_in_group for cell, each in zip(cells, marks, strict=True) if each])
    for place, (panel, job) in enumerate(zip(axes, jobs, strict=True)):
        shown = [(cell, each[job]) for cell, each in zip(cells, marks, strict=True) if job in each]
        for cell, own in shown:
            _draw_series(panel, own.repetitions, colours[cell.name_in_group])
        panel.set_xlim(1, _longest([own.repetitions for _, own in shown]))
        panel.xaxis.set_major_locator(iteration_ticks())
        panel.set_title(job)
        panel.set_xlabel("iteration")
        if place % ROW == 0:
            panel.set_ylabel("ECN marks per iteration")
    axes[0].set_ylim(bottom=0)
    draw_word_key(axes[min(len(axes), ROW) - 1], colours)
    return result


def draw_backlog(traces: Sequence[TrialTrace]) -> Figure | None:
    """Draw the mean backlog of each shared link by iteration of its first job; None if it was not measured.

    Trials of one iteration are left out.
    """
    known = [(trace, _backlog_mb(trace, trace.backlog_bytes)) for trace in traces if trace.backlog_bytes is not None]
    series = [(trace, means) for trace, means in known if len(means) > 1]
    if not series:
        return None
    links = list(dict.fromkeys(trace.link.name for trace, _ in series))
    result, axes = new_figure(1, len(links), 2.9, sharey=True)
    colours = variant_colours([trace.cell.name_in_group for trace, _ in series])
    for panel, link in zip(axes, links, strict=True):
        for trace, means in series:
            if trace.link.name == link:
                panel.plot(np.arange(1, len(means) + 1), means, color=colours[trace.cell.name_in_group], alpha=0.75)
        panel.set_title(link if len(links) > 1 else "")
        panel.set_ylim(bottom=0)
        panel.margins(x=0)
        panel.xaxis.set_major_locator(iteration_ticks())
        panel.set_xlabel("iteration")
    axes[0].set_ylabel("mean backlog, MB")
    draw_word_key(axes[-1], colours)
    return result


def _backlog_mb(trace: TrialTrace, backlog_bytes: Floats) -> Floats:
    return mean_per_iteration(trace, backlog_bytes, next(iter(trace.spans))) / MEGA


def _longest(by_cell: Sequence[Sequence[Floats]]) -> int:
    """Return the largest number of iterations of the cells' first repetitions."""
    return max(len(repetitions[0]) for repetitions in by_cell)


def _draw_series(panel: Axes, repetitions: Sequence[Floats], colour: str) -> None:
    """Draw series against iteration number: thin lines for repetitions, a thick one for their median."""
    series = stack_to_shortest(repetitions)
    number = np.arange(1, series.shape[1] + 1)
    for place, line in enumerate(panel.plot(number, series.T, color=colour, alpha=0.28, linewidth=0.8), start=1):
        line.set_gid(f"repetition {place}")
    panel.plot(number, np.median(series, axis=0), color=colour, linewidth=2, gid="median")


def _distribution(panel: Axes, cells: Sequence[CellTrials], values: Sequence[Mapping[str, Sequence[Floats]]]) -> None:
    """Draw cumulative distributions, by variant in colors and by job in dashes; `values` are a cell's, by job."""
    colours, jobs = variant_colours([cell.name_in_group for cell in cells]), jobs_of(cells)
    for cell, by_job in zip(cells, values, strict=True):
        for job, repetitions in by_job.items():
            ordered = np.sort(np.concatenate(repetitions))
            share = np.arange(1, len(ordered) + 1) / len(ordered)
            style = DASHES[jobs.index(job) % len(DASHES)]
            panel.step(ordered, share, where="post", color=colours[cell.name_in_group], linestyle=style)
    panel.set_ylim(0, 1.06)
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1.0])


def _end_ms(trace: TrialTrace, iterations: int) -> float:
    """Return when the last job ends its first iterations."""
    return float(max(spans[min(iterations, len(spans)) - 1, 1] for spans in trace.spans.values()))


def _has_rates(trace: TrialTrace, iterations: int) -> bool:
    """Return True if the first iterations have two bins at least, between which lines can be drawn."""
    return int(np.count_nonzero(_middles_ms(trace) <= _end_ms(trace, iterations))) > 1


def _middles_ms(trace: TrialTrace) -> Floats:
    return trace.edges_ms[:-1] + np.diff(trace.edges_ms) / 2


def _draw_other_repetitions(
    panel: Axes, trials: Sequence[TrialTrace], until_ms: float, colours: Mapping[str, str]
) -> None:
    """Draw each job's bandwidth in other repetitions, as thin lines."""
    for trace in trials:
        seen = _middles_ms(trace) <= until_ms
        for job, rates in trace.rates.items():
            look: Any = {"color": colours[job], "alpha": 0.28, "linewidth": 0.8, "gid": f"{job}, trial {trace.trial}"}
            panel.plot(_middles_ms(trace)[seen], rates[seen], **look)


def _common_sending(trace: TrialTrace) -> tuple[float, float, NDArray[np.bool_]]:
    """Return the part of the first iteration in which all jobs send: begin, end, and the bins inside."""
    begin = max(spans[0, 0] for spans in trace.spans.values())
    end = min(spans[0, 1] for spans in trace.spans.values())
    return begin, end, (trace.edges_ms[:-1] >= begin) & (trace.edges_ms[1:] <= end)


def _mean_while_all_send(
    panel: Axes, trace: TrialTrace, trials: Sequence[TrialTrace], colours: Mapping[str, str]
) -> None:
    """Shade the first time in which all jobs send, and write each job's mean rate into it, of all repetitions."""
    begin, end, _ = _common_sending(trace)
    insides = [(each, inside) for each in trials if (inside := _common_sending(each)[2]).any()]
    if len(trace.spans) < 2 or end <= begin or not insides:
        return
    panel.axvspan(begin, end, color=INK, alpha=0.045, linewidth=0, zorder=0)
    means = {
        job: float(np.mean([np.nanmean(each.rates[job][inside]) for each, inside in insides])) for job in trace.rates
    }
    ranked = sorted(means, key=means.__getitem__, reverse=True)
    for place, job in enumerate(ranked):
        offset = (0, 11 if place == 0 else -11)
        text = f"{job}  {means[job]:.0f}"
        add_note(
            panel, (begin + end) / 2, means[job], text, colours[job], ha="center", offset=offset, fontweight="bold"
        )


def _rows(trace: TrialTrace) -> dict[str, Floats]:
    """Return bars (row, begin, end) of communication per job, relative to the first job's iteration."""
    first = next(iter(trace.spans.values()))
    begins = np.concatenate([[0.0], first[:-1, 1]])
    rows = {}
    for job, spans in trace.spans.items():
        bars = []
        for number, (begin, end) in enumerate(zip(begins, first[:, 1], strict=True), start=1):
            clipped = np.clip(spans, begin, end) - begin
            bars += [(number, *bar) for bar in clipped if bar[1] > bar[0]]
        rows[job] = np.array(bars).reshape(-1, 3)
    return rows


def _intersections(one: Floats, other: Floats) -> Floats:
    """Return the bars in which two sets of bars overlap, row by row."""
    pairs = [(a[0], max(a[1], b[1]), min(a[2], b[2])) for a in one for b in other if a[0] == b[0]]
    return np.array([bar for bar in pairs if bar[2] > bar[1]]).reshape(-1, 3)


def _bars(panel: Axes, bars: Floats, colour: str) -> None:
    panel.barh(bars[:, 0], bars[:, 2] - bars[:, 1], left=bars[:, 1], height=1.0, color=colour, linewidth=0)


def _fluid_lines(panel: Axes, found: Sequence[JobCell]) -> None:
    """Draw vertical lines at the flow-level model's iteration times, if all jobs that share a link have the same."""
    shared = [each for each in found if each.limit != "alone"]
    for name, text in (("interleaved_ms", "fluid,\ninterleaved"), ("fair_ms", "fluid,\nfair")):
        if (value := _common_limit(shared, name)) is not None:
            value = float(format_ms(value))
            panel.axvline(value, color=SOFT, linewidth=1, linestyle=(0, (4, 3)), zorder=1.5)
            add_note(panel, value, 0.13, f"{text} {format_ms(value, 0)}", offset=(5, 0))


def _common_limit(found: Sequence[JobCell], limit: str) -> float | None:
    """Return a flow-level limit of jobs that share a link; None if it differs between them, or there is none."""
    values = {getattr(each.fluid, limit) for each in found if each.limit != "alone"}
    shown = {value if value is None else format_ms(value) for value in values}
    return next(iter(values)) if len(shown) == 1 else None


def _jobs(traces: Sequence[TrialTrace]) -> list[str]:
    """Return the jobs of all traces, in the experiment's order."""
    return jobs_of(trace.cell for trace in traces)


def _job_key(panel: Axes, jobs: Sequence[str], *, both: bool = False) -> None:
    draw_word_key(panel, job_colours(jobs) | ({"at once": BOTH} if both and len(jobs) > 1 else {}))


def _key(panel: Axes, cells: Sequence[CellTrials]) -> None:
    """Draw the key: variants by color, jobs by dashes."""
    draw_word_key(panel, variant_colours([cell.name_in_group for cell in cells]))
    for place, job in enumerate(jobs_of(cells)):
        panel.plot([], [], color=INK, linestyle=DASHES[place % len(DASHES)], label=job)
    panel.legend()
