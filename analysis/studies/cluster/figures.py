# SPDX-License-Identifier: Apache-2.0
"""The figures of a cluster's schedulers, for cells with equal other levels.

Each function draws a figure and returns it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from analysis.reading.data import PortPlace
from analysis.reading.timelines import ClusterCell, ClusterTrial, JobHistory, Timeline
from analysis.render.style import INK, JOBS, SOFT, draw_level, draw_word_key, new_figure, new_panels
from analysis.statistics.cumulative_counter import CumulativeCounter
from analysis.statistics.intervals import Array
from analysis.studies.cluster.study import IDEAL, PooledIterations

DOTS = 1500
"""Largest number of dots in a panel; of more iterations only every n-th is drawn."""
BINS = 200
"""Number of bins over a trial in which links' use is averaged."""
BUSIEST = 3
MINUTES_FROM_S = 300
DECADE = 10
LEVELS = np.unique([*np.linspace(0, 1, 401), *(1 - np.geomspace(1e-5, 0.0025, 100))])
"""Shares at which cumulative distributions are drawn, closest together in the tail."""
HIGHEST = 9.0
"""Largest height of a panel of placements, in inches; of 100 hosts. Rows of more hosts are narrower."""
EVENTS = {"arrival": "v", "end": "^", "move": "x"}
SHADE = 0.5
"""Factor that darkens colors when the palette is used a second time, for more models than it has colors."""


def model_looks(cells: Iterable[ClusterCell]) -> dict[str, tuple[str, str]]:
    """Return a marker and a color for each model, the same in all figures."""
    models = sorted({request.model for cell in cells for request in cell.first.timeline.requests})
    return {model: _look(place) for place, model in enumerate(models)}


def describe_decimation(cells: Sequence[ClusterCell]) -> str:
    """Return a sentence on which iterations figures of single iterations omit; empty if they draw all."""
    most = max((len(cell.first.points.times_ms) for cell in cells), default=0)
    return (
        f"Every {_decimation_step(most)}th iteration of each model is drawn, of up to {most:,}." if most > DOTS else ""
    )


def draw_events(cells: Sequence[ClusterCell], looks: Mapping[str, tuple[str, str]]) -> Figure:
    """Draw iteration times over the trace, one panel for each scheduler, with the events of jobs above.

    The interleaving thesis, Figures 4.11a and 4.12a.
    """
    result, axes = new_figure(len(cells), 1, 0.9 + 1.75 * len(cells), sharex=True, sharey=True)
    scale, unit = _clock(cells)
    for panel, cell in zip(axes, cells, strict=True):
        _dots(panel, cell.first, looks, scale)
        panel.set_yscale("log")
        panel.set_title(cell.variant, pad=18)
        panel.set_ylabel("iteration, ms")
    for panel, cell in zip(axes, cells, strict=True):
        _use_plain_numbers(panel.yaxis)  # their common one, now that all is drawn
        _draw_job_events(panel, cell.first, scale)
    axes[-1].set_xlabel(f"{unit} since the trace began")
    happened = [_key(marker, INK, what, size=4) for what, marker in EVENTS.items()]
    result.legend(handles=[*_model_keys(looks), *happened], loc="outside lower center", ncols=6)
    return result


def draw_distributions(
    cells: Sequence[ClusterCell], found: Sequence[PooledIterations], colours: Mapping[str, str]
) -> Figure:
    """Draw cumulative distributions of all iteration times: in ms, and over the times in a dedicated cluster.

    The interleaving thesis, Figures 4.11b, 4.12b, 4.13, 4.15 and 4.17.
    """
    result, axes = new_figure(1, 2, 3.6, sharey=True)
    for panel, (label, values) in zip(axes, _pooled_values(cells), strict=True):
        for cell, repetitions in zip(cells, values, strict=True):
            panel.plot(np.quantile(np.concatenate(repetitions), LEVELS), LEVELS, color=colours[cell.variant])
        panel.set_xscale("log")
        _use_plain_numbers(panel.xaxis)
        panel.set_xlabel(label)
    axes[0].set_ylabel("share of iterations")
    gained = "\n".join(map(_describe_gain, (each for each in found if each.baseline and each.speedup_mean)))
    axes[1].text(0.98, 0.04, gained, transform=axes[1].transAxes, ha="right", va="bottom", fontsize=8, color=SOFT)
    _legend(result, {cell.variant: colours[cell.variant] for cell in cells})
    return result


def draw_marks(cells: Sequence[ClusterCell], colours: Mapping[str, str]) -> Figure | None:
    """Draw ECN marks of each iteration, one panel a model (the interleaving thesis, Figure 4.14); None if not known."""
    models = sorted({model for cell in cells for model in cell.models if cell.marks(model)})
    if not models:
        return None
    result, axes = new_panels(len(models), 2.5, sharey=False)
    scale, unit = _clock(cells)
    for panel, model in zip(axes, models, strict=True):
        for cell in cells:
            own = cell.first.points.of_model(model)
            some = slice(None, None, _decimation_step(len(own.marks)))
            panel.plot(own.start_s[some] / scale, own.marks[some], ".", color=colours[cell.variant], markersize=3)
        panel.set_ylim(bottom=0)
        panel.set_title(model)
        panel.set_xlabel(f"{unit} since the trace began")
    axes[0].set_ylabel("ECN marks per iteration")
    _legend(result, {cell.variant: colours[cell.variant] for cell in cells})
    return result


def draw_links(
    cells: Sequence[ClusterCell], sent: Mapping[PortPlace, CumulativeCounter], colours: Mapping[str, str]
) -> Figure | None:
    """Draw the use of the busiest links between switches, one panel for each direction; None without counters."""
    busiest = _busiest_ports(cells, sent)
    if not busiest:
        return None
    result, axes = new_figure(len(busiest), 1, 0.9 + 1.6 * len(busiest), sharex=True)
    scale, unit = _clock(cells)
    edges_s = np.linspace(0, _until_s(cells), BINS + 1)
    for panel, (link, towards) in zip(axes, busiest, strict=True):
        for cell in cells:
            port = sent.get(PortPlace(cell.first.key, link, towards))
            if port:
                rate_gbps = 8e-9 * port.rate(cell.first.start_ns + (1e9 * edges_s).astype(np.int64))
                panel.plot(
                    (edges_s[:-1] + edges_s[1:]) / 2 / scale, rate_gbps, color=colours[cell.variant], linewidth=1.1
                )
        carried = next(each for each in cells[0].first.spec.topology.links if each.name == link)
        panel.set_ylim(0, 1.15 * carried.payload_rate_gbps)
        panel.set_xlim(0, edges_s[-1] / scale)
        draw_level(panel, carried.payload_rate_gbps, f"carries {carried.payload_rate_gbps:g}")
        panel.set_title(f"link {link}, towards {towards}")
        panel.set_ylabel("Gbit/s")
    axes[-1].set_xlabel(f"{unit} since the trace began")
    _legend(result, {cell.variant: colours[cell.variant] for cell in cells})
    return result


def without_dedicated(cells: Iterable[ClusterCell]) -> list[ClusterCell]:
    """Return the cells without those of the ideal scheduler, whose jobs ran one after the other."""
    return [cell for cell in cells if cell.first.timeline.scheduler != IDEAL]


def draw_placements(cells: Sequence[ClusterCell], looks: Mapping[str, tuple[str, str]]) -> Figure:
    """Draw placements over time, one panel for each scheduler: rows are hosts, and bars are allocations by model."""
    hosts = list(cells[0].first.spec.topology.hosts)
    height = min(max(0.09 * len(hosts), 0.8), HIGHEST)
    result, axes = new_figure(len(cells), 1, 0.9 + (0.45 + height) * len(cells), sharex=True, sharey=True)
    scale, unit = _clock(cells)
    for panel, cell in zip(axes, cells, strict=True):
        _draw_placement(panel, cell.first.timeline, {host: row for row, host in enumerate(hosts)}, looks, scale)
        panel.set_ylim(len(hosts) - 0.5, -0.5)
        ticks = range(0, len(hosts), max(1, len(hosts) // 6))
        panel.set_yticks(ticks, [hosts[tick] for tick in ticks])
        panel.grid(visible=False)
        panel.set_title(cell.variant)
    axes[-1].set_xlim(0, _until_s(cells) / scale)
    axes[-1].set_xlabel(f"{unit} since the trace began")
    result.legend(handles=_model_keys(looks, "s"), loc="outside lower center", ncols=7)
    return result


def draw_histories(cells: Sequence[ClusterCell], colours: Mapping[str, str]) -> Figure:
    """Draw cumulative distributions over jobs: completion time, queueing delay, and finish-time fairness."""
    shown: dict[str, Callable[[JobHistory], float | None]] = {
        "job completion time, s": lambda life: life.completion_s,
        "queueing delay, s": lambda life: life.queueing_s,
        "finish-time fairness": lambda life: life.fairness,
    }
    result, axes = new_panels(len(shown), 3.2)
    for panel, (label, figure_of) in zip(axes, shown.items(), strict=True):
        for cell in cells:
            all_lives = (life for trial in cell.trials.values() for life in trial.timeline.jobs)
            known = np.sort([each for life in all_lives if (each := figure_of(life)) is not None])
            if len(known):
                share = np.linspace(0, 1, len(known) + 1)
                panel.step([known[0], *known], share, where="post", color=colours[cell.variant])
        panel.set_xlabel(label)
        panel.xaxis.set_major_locator(MaxNLocator(5))
    axes[0].set_ylabel("share of jobs")
    _legend(result, {cell.variant: colours[cell.variant] for cell in cells})
    return result


def draw_scores(cells: Sequence[ClusterCell], colours: Mapping[str, str]) -> Figure | None:
    """Draw over time the compatibility scores of the candidates that Cassini chose, and of the other candidates.

    None if there are no scores.
    """
    ranked = [cell for cell in cells if any(each.known_scores for each in cell.first.timeline.decisions)]
    if not ranked:
        return None
    result, (panel,) = new_figure(1, 1, 2.9)
    scale, unit = _clock(cells)
    for cell in ranked:
        reported = [
            (each.at_s / scale, each.known_scores) for each in cell.first.timeline.decisions if each.known_scores
        ]
        others, chosen = (
            [(at, score) for at, own in reported for score in own],
            [(at, max(own)) for at, own in reported],
        )
        look: Any = {"color": colours[cell.variant]}
        panel.plot(*zip(*others, strict=True), ".", alpha=0.25, markersize=4, gid="candidates", **look)
        panel.step(*zip(*chosen, strict=True), where="post", gid="chosen", **look)
    panel.set_xlabel(f"{unit} since the trace began")
    panel.set_ylim(min(0, panel.get_ylim()[0]), 1.05)
    panel.set_ylabel("compatibility score")
    draw_word_key(panel, {cell.variant: colours[cell.variant] for cell in ranked})
    return result


def _use_plain_numbers(axis: Axis) -> None:
    """Write plain numbers on a logarithmic axis."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7) if high < DECADE * low else (1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _pooled_values(cells: Sequence[ClusterCell]) -> list[tuple[str, list[list[Array]]]]:
    return [
        ("iteration time, ms", [cell.times_ms for cell in cells]),
        ("iteration time over a dedicated cluster's", [cell.slowdowns for cell in cells]),
    ]


def _describe_gain(each: PooledIterations) -> str:
    tail = f", p99 {each.speedup_p99.value:.2f}" if each.speedup_p99 else ""
    return f"{each.name} over {each.baseline}: mean {each.speedup_mean.value:.2f}{tail}" if each.speedup_mean else ""


def _dots(panel: Axes, trial: ClusterTrial, looks: Mapping[str, tuple[str, str]], scale: float) -> None:
    points, every = trial.points, _decimation_step(len(trial.points.times_ms))
    for model, (marker, colour) in looks.items():
        own = points.of_model(model)
        look: Any = {"color": colour, "marker": marker, "markersize": 2.6, "linestyle": "", "gid": model}
        panel.plot(own.start_s[::every] / scale, own.times_ms[::every], markeredgewidth=0, **look)


def _draw_job_events(panel: Axes, trial: ClusterTrial, scale: float) -> None:
    """Draw arrivals, moves and ends of jobs, in rows above the iterations."""
    timeline, from_s = trial.timeline, trial.window_start_s or 0.0
    until_s = max(allocation.ends_s for allocation in timeline.allocations)
    arrived = (life.arrived_s - from_s for life in timeline.jobs)
    ended = (life.ended_s - from_s for life in timeline.jobs if life.ended_s is not None)
    at_s = {
        "arrival": [at for at in arrived if 0 <= at <= until_s],
        "end": [at for at in ended if 0 <= at <= until_s],
        "move": [allocation.begins_s for allocation in timeline.moves],
    }
    place = panel.get_xaxis_transform()
    for row, (what, marker) in enumerate(EVENTS.items()):
        heights = np.full(len(at_s[what]), 1.02 + 0.06 * row)
        look: Any = {"color": INK, "markersize": 3, "linestyle": "", "clip_on": False, "transform": place}
        look["in_layout"] = False
        panel.plot(np.array(at_s[what]) / scale, heights, marker=marker, markeredgewidth=0.7, **look)


def _draw_placement(
    panel: Axes, timeline: Timeline, row: Mapping[str, int], looks: Mapping[str, tuple[str, str]], scale: float
) -> None:
    for allocation in timeline.allocations:
        begin, width = allocation.begins_s / scale, (allocation.ends_s - allocation.begins_s) / scale
        for host in allocation.workers:
            panel.barh(row[host], width, left=begin, height=0.86, color=looks[timeline.models[allocation.job]][1])


def _busiest_ports(cells: Sequence[ClusterCell], sent: Mapping[PortPlace, CumulativeCounter]) -> list[tuple[str, str]]:
    """Return ports between switches by their total bytes under all schedulers, as a share of their capacity."""
    topology, keys = cells[0].first.spec.topology, {cell.first.key for cell in cells}
    rates = {each.name: each.payload_rate_gbps for each in topology.links if not {*each.ends} & {*topology.hosts}}
    carried: dict[tuple[str, str], float] = {}
    for (trial, link, towards), port in sent.items():
        if trial in keys and link in rates:
            carried[link, towards] = carried.get((link, towards), 0) + port.total_gain / rates[link]
    return sorted(carried, key=lambda port: (-carried[port], port))[:BUSIEST]


def _look(place: int) -> tuple[str, str]:
    colour = JOBS[place % len(JOBS)]
    if place < len(JOBS):
        return "o", colour
    red, green, blue = (SHADE * part for part in to_rgb(colour))
    return "s", to_hex((red, green, blue))


def _decimation_step(count: int) -> int:
    return max(1, -(-count // DOTS))


def _until_s(cells: Sequence[ClusterCell]) -> float:
    return max(allocation.ends_s for cell in cells for allocation in cell.first.timeline.allocations)


def _clock(cells: Sequence[ClusterCell]) -> tuple[float, str]:
    return (60.0, "minutes") if _until_s(cells) >= MINUTES_FROM_S else (1.0, "seconds")


def _key(marker: str, colour: str, label: str, size: float = 5) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linestyle="", markersize=size, label=label)


def _model_keys(looks: Mapping[str, tuple[str, str]], marker: str | None = None) -> list[Line2D]:
    return [_key(marker or own, colour, model) for model, (own, colour) in looks.items()]


def _legend(result: Figure, colours: Mapping[str, str]) -> None:
    lines = [Line2D([], [], color=colour, linewidth=2, label=name) for name, colour in colours.items()]
    result.legend(handles=lines, loc="outside upper right", ncols=min(len(lines), 6))
