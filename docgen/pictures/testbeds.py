# SPDX-License-Identifier: Apache-2.0
"""Pictures at the top of explanations of testbeds, trials and expectations, from published runs and formulas."""

from collections import Counter

import numpy as np
import pyarrow as pa
from matplotlib.ticker import PercentFormatter

from analysis.render.page import svg_of
from analysis.render.style import JOBS, TONE_COLOURS, draw_level, draw_word_key, new_figure
from analysis.render.tables import TONES
from analysis.reports.publishing.publication import RESULTS, publications
from analysis.reports.testbed_page import COLOURS
from roundabout.runner.disturbance.effect import estimate_disturbance
from roundabout.runner.trial.validity_checks import LATE_P90_MAX, STALLED_MAX, STOLEN_MAX
from roundabout.spec import load_experiment
from roundabout.store.trial_states import DISTURBANCE

EXPERIMENT = "unfair-vgg19"
SCALE = 100
"""The lab's scale: real rates are divided by it."""
FRAME_BYTES = 1538
"""A full packet of a MTU of 1,500 bytes on a link: with preamble, frame check sequence and gap (IEEE 802.3)."""
JOB_GBPS = 25.0  # the rate whose packets the picture of dilation shows, as the page does
ITERATION_MS = 300.0
"""An iteration time; the effect of late wake-ups depends on their share of it alone."""
LIMITS = {
    "steal_mean": ("stolen CPU time", STOLEN_MAX),
    "stalled_share": ("links that stood still", STALLED_MAX),
    "late_p90_ms": ("late wake-ups", LATE_P90_MAX),
}
"""What each kind of disturbance is called, and its limit, by column of the table `trials`."""
MIN_LABELLED = 5
"""Least number of verdicts that fits into a bar."""
BASES = ("by construction", "fitted", "predicted")
WORDS = ("pass", "inconclusive", "fail", "not measured")


def draw_durations() -> str:
    """Return the picture of how long published runs took on each testbed, and of the same experiment on several."""
    found = [(each.folder.parent.name, each.facts.testbed, each.facts.wall_s) for each in publications(RESULTS)]
    kinds = [kind for kind in COLOURS if any(testbed == kind for _, testbed, _ in found)]
    figure, (panel,) = new_figure(1, 1, 2.4)
    for place, kind in enumerate(kinds):
        own = [(name, wall_s) for name, testbed, wall_s in found if testbed == kind]
        panel.plot([wall_s for _, wall_s in own], [place] * len(own), "o", color=COLOURS[kind], alpha=0.4)
        for name, wall_s in own:
            if name == EXPERIMENT:
                panel.plot(wall_s, place, "o", color=COLOURS[kind], markersize=9)
                panel.text(wall_s, place - 0.22, EXPERIMENT, ha="center", fontsize=8.5)
    panel.set_yticks(range(len(kinds)), kinds)
    panel.set_ylim(len(kinds) - 0.5, -0.7)
    panel.set_xscale("log")
    ticks = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36000: "10 h"}
    panel.set_xticks(list(ticks), list(ticks.values()))
    panel.minorticks_off()
    panel.set_xlabel("time that a published run took")
    return svg_of(figure)


def draw_dilation() -> str:
    """Return the picture of a packet's time in the lab, in the papers' time, by dilation, beside DCQCN's timers."""
    figure, (panel,) = new_figure(1, 1, 2.6)
    dilation = np.array([1.0, SCALE])
    packet_us = FRAME_BYTES * 8 * SCALE / (JOB_GBPS * 1e3)
    panel.plot(dilation, packet_us / dilation, color=JOBS[0])
    panel.text(4, 0.6 * packet_us, f"a packet of a flow of {JOB_GBPS:g} Gbit/s", color=JOBS[0])
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(1, SCALE)
    panel.set_ylim(0.3, 300)
    panel.set_xticks([1, 3, 16, 100], ["1", "3", "16", "100"])
    panel.set_yticks([0.5, 5, 50], ["0.5", "5", "50"])
    panel.minorticks_off()
    transport = next(cell.spec for cell in load_experiment(EXPERIMENT).cells).jobs["j1"].transport
    timers = {"T": transport.model_dump()["T_us"], "gap between CNPs": transport.published.parameters["cnp_gap_us"]}
    for name, us in timers.items():
        draw_level(panel, us, f"{name}: {us:g} µs")
    panel.set_xlabel("dilation")
    panel.set_ylabel("µs of the papers' time")
    return svg_of(figure)


def draw_effect() -> str:
    """Return the picture of a disturbance's estimated effect by its share, and the limits of a valid trial."""
    figure, (panel,) = new_figure(1, 1, 2.6)
    shares = np.linspace(0, 0.05, 51)
    colours = {name: colour for (name, _), colour in zip(LIMITS.values(), JOBS, strict=False)}
    for column, (name, limit) in LIMITS.items():
        panel.plot(shares, [_effect(column, share) for share in shares], color=colours[name])
        panel.plot(limit, _effect(column, limit), "o", color=colours[name], markersize=7)
        note = f"{limit:.1%}"
        panel.text(limit + 0.0006, _effect(column, limit) - 0.007, note, color=colours[name], weight="bold")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    panel.set_xlim(0, shares[-1])
    panel.set_ylim(bottom=0)
    panel.set_xlabel("share of the CPU, of the trial or of the iteration; points: limits of a valid trial")
    panel.set_ylabel("estimated effect")
    draw_word_key(panel, colours)
    return svg_of(figure)


def _effect(column: str, share: float) -> float:
    """Return the estimated effect of one kind of disturbance alone."""
    table = pa.table({"job": ["j1"], "iteration_ms": [ITERATION_MS]})
    value = share * ITERATION_MS if column == "late_p90_ms" else share
    return estimate_disturbance({column: value}, table)[DISTURBANCE]


def draw_bases() -> str:
    """Return the picture of the verdicts of all published runs, by the basis of the expectation."""
    counts = Counter(
        (each.basis, each.verdict) for publication in publications(RESULTS) for each in publication.verdicts
    )
    figure, (panel,) = new_figure(1, 1, 2.1)
    for place, basis in enumerate(BASES):
        left = 0
        for word in WORDS:
            count = counts[basis, word]
            panel.barh(
                place, count, 0.7, left, color=TONE_COLOURS[TONES[word]], alpha=0.45 if word == "not measured" else 1
            )
            if count > MIN_LABELLED:
                panel.text(left + count / 2, place, str(count), ha="center", va="center", color="white", fontsize=8.5)
            left += count
    panel.set_yticks(range(len(BASES)), BASES)
    panel.set_ylim(len(BASES) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
    panel.set_xlabel("verdicts of published runs")
    draw_word_key(panel, {word: TONE_COLOURS[TONES[word]] for word in WORDS})
    return svg_of(figure)
