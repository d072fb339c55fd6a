# SPDX-License-Identifier: Apache-2.0
"""The picture of README: the main result of HotNets'22 beside the published figures of each testbed, as an SVG."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from analysis.expectations.verdicts import Part, Verdict
from analysis.papers import find_printed, row_of
from analysis.render.page import svg_of
from analysis.render.style import FAINT, INK, JOBS, SOFT, TONE_COLOURS, add_note, new_figure
from analysis.render.tables import TONES
from analysis.reports.publishing.publication import RESULTS, Publication
from analysis.reports.scoreboard import TESTBEDS, heading_of

EXPERIMENT, ROW = "unfair-vgg19", "A Fig 1b, 1c, 1d"
BAR = 0.36
"""Width of a bar; the two jobs of a pair stand side by side."""


def draw() -> str:
    """Return the picture as SVG: bandwidth in the first iteration, and the speed-up of the median iteration."""
    shown = [kind for kind in TESTBEDS if not row_of(ROW).why_not_shown(EXPERIMENT, kind)]
    found = {heading_of(kind): Publication(RESULTS / EXPERIMENT / kind) for kind in shown}
    verdicts = {name: each.verdicts for name, each in found.items() if each.folder.is_dir()}
    figure, axes = new_figure(1, 3, 2.7, width_ratios=(1, 1, 1.15))
    for panel, variant, entry in zip(axes, ("fair", "unfair"), ("hotnets/fig-1b", "hotnets/fig-1c"), strict=False):
        printed = find_printed(entry).entry.figures
        assert isinstance(printed, Mapping)
        shown = {"paper": dict(printed)}
        for name, own in verdicts.items():
            parts = _parts(own, "first-iteration bandwidth", variant)
            if parts:
                shown[name] = {part.name: part.measured or 0.0 for part in parts}
        _draw_bandwidth(panel, shown, variant)
    _draw_speedups(axes[2], verdicts)
    return svg_of(figure)


def _parts(verdicts: Sequence[Verdict], what: str, of: str) -> tuple[Part, ...]:
    """Return the measured figures of a quantity for the jobs of Figure 1."""
    own = (each for each in verdicts if (each.what, each.of, each.at) == (what, of, {"figure": "fig-1"}))
    return next((each.parts for each in own if each.verdict != "not measured"), ())


def _draw_bandwidth(axes: Axes, shown: Mapping[str, Mapping[str, float]], variant: str) -> None:
    for place, (name, jobs) in enumerate(shown.items()):
        for side, (job, colour) in enumerate(zip(("j1", "j2"), JOBS, strict=False)):
            value = jobs[job]
            at = place + (side - 0.5) * BAR
            axes.bar(at, value, BAR * 0.92, color=colour, alpha=0.45 if name == "paper" else 1)
            axes.text(at, value + 0.5, f"{value:.0f}", ha="center", fontsize=8, color=INK)
    axes.set_xticks(range(len(shown)), list(shown))
    axes.set_ylim(0, 38)
    axes.set_ylabel("Gbit/s")
    axes.grid(visible=False, axis="x")
    timers = "both T = 125 µs" if variant == "fair" else "T = 100 and 125 µs"
    axes.set_title(f"{variant.capitalize()}: {timers}")
    add_note(axes, 0.02, 0.95, "j1", JOBS[0], xycoords="axes fraction", weight="bold")
    add_note(axes, 0.11, 0.95, "j2", JOBS[1], xycoords="axes fraction", weight="bold")


def _draw_speedups(axes: Axes, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    """Draw each testbed's speed-up in its verdict's color; the tolerance around the paper's is grey."""
    rows = {name: _parts(own, "speedup of median iteration time", "unfair")[:1] for name, own in verdicts.items()}
    known = [(name, part) for name, parts in rows.items() for part in parts]
    printed, tolerance = known[0][1].paper or 0.0, known[0][1].tolerance or 0.0
    axes.axvline(1, color=SOFT, linewidth=1)
    axes.axvspan(printed - tolerance, printed + tolerance, color=FAINT, zorder=0)
    names = ["paper", *(name for name, _ in known)]
    drawn = [
        (printed, None, SOFT),
        *((part.measured or 0.0, part.ci95, TONE_COLOURS[TONES[part.verdict]]) for _, part in known),
    ]
    for place, (value, interval, colour) in enumerate(drawn):
        if interval:
            axes.plot(interval, [place, place], color=colour, linewidth=2)
        axes.plot(value, place, "o", color=colour, markersize=7)
        add_note(axes, value, place, f"{value:.2f}", INK, offset=(0, 11), ha="center")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.8)
    axes.set_xlim(0.95, 1.35)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("times as fast as fair (median iteration)")
    axes.set_title("Unfair is faster, for both jobs")
