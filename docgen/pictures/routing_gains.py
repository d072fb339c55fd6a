# SPDX-License-Identifier: Apache-2.0
"""The picture of docs/results/spraying.md: iteration times by paths and variant, from the published run, as an SVG."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from analysis.render.page import svg_of
from analysis.render.style import FREE, SOFT, VARIANTS, draw_word_key, new_figure
from analysis.reports.publishing.publication import RESULTS, Publication

EXPERIMENT, TESTBED = "spraying", "packets"
GROUPS = {"two": "Two jobs", "three": "Three jobs"}
ROUTES = {
    "static": ("static",),
    "ecmp": ("ecmp-1", "ecmp-2", "ecmp-3"),
    "spray": ("spray",),
    "adaptive": ("adaptive",),
    "planes": ("planes",),
}
"""Columns, and the levels that each one shows: three seeds of ECMP."""
SHOWN = {
    "alone": ("alone", VARIANTS["alone"]),
    "fair": ("fair", VARIANTS["fair"]),
    "MLTCP": ("mltcp", VARIANTS["mltcp"]),
    "unfair": ("unfair", VARIANTS["unfair"]),
    "priority": ("priority", FREE[0]),
    "shifted": ("shifted", VARIANTS["cassini"]),
}
STEP = 0.12
"""Distance of two variants in a column."""


class Ratio(NamedTuple):
    """A mean iteration time over that of a job alone on static paths, with its 95 % interval."""

    value: float
    low: float
    high: float


def draw() -> str:
    """Return the picture as SVG."""
    cells = Publication(RESULTS / EXPERIMENT / TESTBED).summary["cells"]
    figure, axes = new_figure(1, 2, 3.1, sharey=True)
    for panel, (group, title) in zip(axes, GROUPS.items(), strict=True):
        _draw_group(panel, {label: _ratios(cells, group, label) for label in SHOWN})
        panel.set_title(title)
    axes[0].set_ylabel("iteration time over alone")
    draw_word_key(axes[0], {label: colour for label, (_, colour) in SHOWN.items()})
    return svg_of(figure)


def _ratios(cells: list[dict[str, Any]], group: str, label: str) -> dict[str, list[Ratio]]:
    """Return the ratios of a variant by column, one for each of its levels."""
    return {column: [ratio_of(cells, group, level, label) for level in levels] for column, levels in ROUTES.items()}


def ratio_of(cells: list[dict[str, Any]], group: str, routes: str, label: str) -> Ratio:
    """Return the mean of all jobs of a cell. Its interval is as wide as theirs on average, and never too narrow."""
    variant = SHOWN[label][0]
    by_thirds = "shifted-by-thirds" if variant == "shifted" and group == "three" else variant
    alone_ms = fmean(each["mean_ms"] for each in _select(cells, group, "static", "alone"))
    jobs = _select(cells, group, routes, by_thirds)
    value = fmean(each["mean_ms"] for each in jobs)
    low, high = (fmean(each["mean_ci95_ms"][side] for each in jobs) for side in (0, 1))
    return Ratio(value / alone_ms, low / alone_ms, high / alone_ms)


def _select(cells: list[dict[str, Any]], group: str, routes: str, variant: str) -> list[dict[str, Any]]:
    levels = {"jobs": group, "routes": routes, "variant": variant}
    return [each for each in cells if each["levels"] == levels]


def _draw_group(axes: Axes, shown: Mapping[str, Mapping[str, list[Ratio]]]) -> None:
    axes.axhline(1, color=SOFT, linewidth=1)
    for place, (label, columns) in enumerate(shown.items()):
        colour = SHOWN[label][1]
        for column, ratios in enumerate(columns.values()):
            at = column + (place - (len(shown) - 1) / 2) * STEP
            for each in ratios:
                axes.plot([at, at], [each.low, each.high], color=colour)
                axes.plot(at, each.value, "o", color=colour, markersize=4.5)
    axes.set_xticks(range(len(ROUTES)), list(ROUTES))
    axes.grid(visible=False, axis="x")
