# SPDX-License-Identifier: Apache-2.0
"""The look of figures: one palette (Okabe and Ito's, safe for color-blind readers), quiet axes, labels on the lines."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea, VPacker
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from analysis.render.tables import Tone

INK, SOFT, FAINT = "#1b1f24", "#6a737d", "#e4e7eb"
BOTH = "#33302e"
TONE_COLOURS = {Tone.GOOD: "#009e73", Tone.BAD: "#d55e00", Tone.OPEN: "#e69f00", Tone.UNKNOWN: SOFT}
"""Colors of tones in figures; page.css has the same for cards."""
JOBS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
VARIANTS = {"alone": "#8a929b", "fair": "#CC79A7", "unfair": "#009E73", "mltcp": "#56B4E9", "cassini": "#D55E00"}
FREE = (
    *("#E69F00", "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#F0E442", "#8a929b"),
    *("#735000", "#882255", INK),
)
"""Colors of variants without a color of their own; the first ones are the most legible beside each other.

As many as cluster-poisson has schedulers: with more variants than these, the last ones look alike.
"""
WIDTH = 9.6
KEY_LETTERS = 60
"""Number of letters for which a row of a key has room."""
ROW = 3
"""Largest number of panels in a row."""

RC: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#b4bac1",
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelcolor": SOFT,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "roundabout",
    "text.color": INK,
    "xtick.color": SOFT,
    "xtick.labelsize": 8.5,
    "xtick.major.size": 0,
    "ytick.color": SOFT,
    "ytick.labelsize": 8.5,
    "ytick.major.size": 0,
}


def new_figure(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of the common width, and its axes row by row.

    `height` in inches; `options` as for subplots.
    """
    mpl.rcParams.update(RC)
    result = Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    axes = result.subplots(rows, columns, squeeze=False, **options)
    return result, list(axes.flat)


def new_panels(count: int, height: float, *, sharey: bool = True, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of `count` axes, by default with a common y-axis, at most `ROW` in a row of `height` inches."""
    rows = -(-count // ROW)
    result, axes = new_figure(rows, min(count, ROW), height * rows, sharey=sharey, **options)
    for above, spare in zip(axes[count - min(count, ROW) :], axes[count:], strict=False):
        above.tick_params(labelbottom=True)  # with a common x-axis only the lowest row has labels
        spare.remove()
    return result, axes[:count]


def job_colours(jobs: Sequence[str]) -> dict[str, str]:
    """Return a color for each job, by its position in the experiment."""
    return {job: JOBS[place % len(JOBS)] for place, job in enumerate(jobs)}


def variant_colours(variants: Sequence[str]) -> dict[str, str]:
    """Return a color for each variant: its own if it has one, else the next free one."""
    taken = {VARIANTS[variant] for variant in variants if variant in VARIANTS}
    others = (colour for colour in FREE if colour not in taken)
    return {variant: VARIANTS.get(variant) or next(others, INK) for variant in dict.fromkeys(variants)}


def add_note(axes: Axes, x: float, y: float, text: str, colour: str = SOFT, **options: Any) -> None:
    """Add a text label at (x, y) that stays legible on lines and bands."""
    look = {"fontsize": 8.5, "color": colour, "va": "center", **options}
    label = axes.annotate(text, (x, y), xytext=look.pop("offset", (0, 0)), textcoords="offset points", **look)
    label.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def draw_level(axes: Axes, y: float, text: str, *, below: bool = False) -> None:
    """Draw a dashed horizontal line at `y`, labeled with `text` at its right end, above or `below` the line."""
    axes.axhline(y, color=SOFT, linewidth=1, linestyle=(0, (4, 3)), zorder=1.5)
    side: dict[str, Any] = {"va": "top", "offset": (0, -3)} if below else {"va": "bottom", "offset": (0, 2)}
    add_note(axes, axes.get_xlim()[1], y, text, ha="right", **side)


def iteration_ticks() -> MaxNLocator:
    """Return a locator of ticks at whole iterations only."""
    return MaxNLocator(nbins="auto", steps=[1, 2, 2.5, 5, 10], integer=True)


def draw_disturbed(panel: Axes, points: Sequence[tuple[float, float]], colour: str) -> None:
    """Draw hollow points over those of disturbed trials, with one note that explains them."""
    if not points:
        return
    x, y = zip(*points, strict=True)
    panel.plot(x, y, "o", markersize=6, markerfacecolor="white", color=colour, clip_on=False, zorder=4)
    panel.annotate(
        "hollow: disturbed", (1, 0), xycoords="axes fraction", ha="right", va="bottom", color=SOFT, fontsize=8
    )


def draw_word_key(axes: Axes, coloured: dict[str, str], weight: str = "bold") -> None:
    """Draw a key of colored words above the axes, in as many rows as the figure's width requires."""
    rows: list[list[Artist]] = [[]]
    letters = 0
    for word, colour in coloured.items():
        letters += len(word)
        if rows[-1] and letters > KEY_LETTERS:
            rows.append([])
            letters = len(word)
        rows[-1].append(TextArea(word, textprops={"color": colour, "weight": weight}))
    packed: list[Artist] = [HPacker(children=row, pad=0, sep=12) for row in rows]
    key = VPacker(children=packed, align="right", pad=0, sep=3)
    place: Any = {"xycoords": "axes fraction", "xybox": (0, 9), "boxcoords": "offset points", "box_alignment": (1, 0)}
    axes.add_artist(AnnotationBbox(key, (1, 1), frameon=False, pad=0, **place))
