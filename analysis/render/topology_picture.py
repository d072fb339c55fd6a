# SPDX-License-Identifier: Apache-2.0
"""A picture of a topology: hosts at the bottom, switches above them, and links, whose width and color is their rate."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from analysis.render.style import INK, RC, SOFT, TONE_COLOURS, WIDTH, add_note
from analysis.render.tables import Tone
from analysis.render.topology_groups import GroupedTopology, LinkGroup, NodeGroup, box_letters, group_topology
from roundabout.spec import Topology

LETTER_IN = 0.08
"""Width of a letter, inches."""
BOX_IN, TIER_IN, HEAD_IN = 0.42, 1.2, 0.75
"""Height of a box, distance of tiers and height of the heading, inches."""
MIN_WIDTH_IN = 5.5
HOST, SWITCH = "#cfe2ff", "#e3e3e8"
"""Colors of boxes, light enough for black text on light and dark pages."""
RATES = ("#aab2bb", "#56B4E9", "#0072B2", "#882255", INK)
"""Colors of links in the order of their rates; the last one is of all higher rates."""
BOTTLENECK = TONE_COLOURS[Tone.BAD]
LABEL_AT = 0.45
"""Place of a link's label between its lower and its upper end, below the middle, where lines meet less often."""
MAX_LABELS = 16
"""Largest number of links between two tiers with a label each."""
Places = Mapping[NodeGroup, tuple[float, float]]


def draw_topology(topology: Topology) -> Figure:
    """Draw a topology of any size; if it is too large for a box for each node, equal nodes share one."""
    grouped = group_topology(topology)
    letters = max(sum(map(box_letters, tier)) for tier in grouped.tiers)
    width = min(max(letters * LETTER_IN, MIN_WIDTH_IN), WIDTH)
    height = HEAD_IN + TIER_IN * (len(grouped.tiers) - 1) + 2 * BOX_IN
    mpl.rcParams.update(RC)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    places = {
        group: (width * (number + 0.5) / len(tier), BOX_IN + TIER_IN * level)
        for level, tier in enumerate(grouped.tiers)
        for number, group in enumerate(tier)
    }
    rates = sorted({link.rate_gbps for link in grouped.links})
    colours = {rate: RATES[min(number, len(RATES) - 1)] for number, rate in enumerate(rates)}
    for link in grouped.links:
        label = _label(link) if _has_label(grouped, link, len(rates)) else ""
        _draw_links(axes, link, places, colours, label)
    for group, place in places.items():
        _draw_box(axes, group, place)
    _draw_heading(axes, topology, grouped, colours)
    return figure


def describe_grouping(topology: Topology, grouped: GroupedTopology) -> str:
    """Return a sentence on the boxes that stand for several nodes; empty if there are none."""
    hosts, switches = len(topology.hosts), len(topology.switches)
    boxes = [len(grouped.tiers[0]), sum(map(len, grouped.tiers[1:]))]
    kinds = [
        f"{count:,} {kind} in {shown} {'box' if shown == 1 else 'boxes'}"
        for kind, count, shown in zip(("hosts", "switches"), (hosts, switches), boxes, strict=True)
        if shown < count
    ]
    return f"Equal nodes share a box: {' and '.join(kinds)}." if kinds else ""


def _draw_heading(axes: Axes, topology: Topology, grouped: GroupedTopology, colours: Mapping[float, str]) -> None:
    top = axes.get_ylim()[1]
    gpus = f", {topology.gpus_per_host} GPUs a host" if topology.gpus_per_host > 1 else ""
    counts = f"{len(topology.hosts):,} hosts{gpus}, {len(topology.switches):,} switches, {len(topology.links):,} links"
    axes.text(0.12, top - 0.17, topology.name, fontsize=11, weight="bold", va="center")
    axes.text(0.12, top - 0.39, counts, color=SOFT, va="center")
    axes.text(0.12, top - 0.59, describe_grouping(topology, grouped), color=SOFT, va="center")
    right = axes.get_xlim()[1] - 0.12
    for number, (rate, colour) in enumerate(colours.items()):
        words = f"{rate:g} Gbit/s"
        axes.text(right, top - 0.17 - 0.2 * number, words, color=INK, ha="right", va="center")
        start = right - LETTER_IN * len(words) - 0.05
        axes.plot([start - 0.3, start], [top - 0.17 - 0.2 * number] * 2, color=colour, linewidth=_line_width(number))


def _draw_box(axes: Axes, group: NodeGroup, place: tuple[float, float]) -> None:
    x, y = place
    width = LETTER_IN * (box_letters(group) - 1.6)
    look: Any = {"boxstyle": "round,pad=0,rounding_size=0.06", "edgecolor": SOFT, "linewidth": 0.8, "zorder": 3}
    color = SWITCH if group.tier else HOST
    axes.add_patch(FancyBboxPatch((x - width / 2, y - BOX_IN / 2), width, BOX_IN, facecolor=color, **look))
    count = len(group.names)
    if count == 1:
        axes.text(x, y, group.label, ha="center", va="center", zorder=4)
        return
    kind = "switches" if group.tier else "hosts"
    axes.text(x, y + 0.08, group.label, ha="center", va="center", zorder=4)
    axes.text(x, y - 0.1, f"{count:,} {kind}", ha="center", va="center", fontsize=8, color=SOFT, zorder=4)


def _draw_links(axes: Axes, link: LinkGroup, places: Places, colours: Mapping[float, str], label: str) -> None:
    colour = BOTTLENECK if link.is_bottleneck else colours[link.rate_gbps]
    (x1, y1), (x2, y2) = places[link.lower], places[link.upper]
    wide = _line_width(list(colours).index(link.rate_gbps))
    is_bowed = link.lower.tier == link.upper.tier and abs(x1 - x2) > 1.5 * _distance(places, link.lower.tier)
    bow = 0.25 if x1 < x2 else -0.25
    axes.add_patch(
        FancyArrowPatch(
            *((x1, y1), (x2, y2)), arrowstyle="-", connectionstyle=f"arc3,rad={-bow if is_bowed else 0}",
            shrinkA=0, shrinkB=0, color=colour, linewidth=wide, zorder=2,
        )
    )  # fmt: skip
    if label:
        rise = 0.12 * abs(x1 - x2) if is_bowed else 0.12 if y1 == y2 else 0
        half_in = 0.45 * LETTER_IN * max(map(len, label.split("\n")))
        x = min(max(x1 + LABEL_AT * (x2 - x1), half_in), axes.get_xlim()[1] - half_in)
        y = y1 + LABEL_AT * (y2 - y1) + rise
        add_note(axes, x, y, label, INK, ha="center", zorder=5, fontsize=8)


def _distance(places: Places, tier: int) -> float:
    """Return the distance of neighbours in a tier."""
    own = sorted(x for group, (x, _) in places.items() if group.tier == tier)
    return own[1] - own[0] if len(own) > 1 else 0.0


def _has_label(grouped: GroupedTopology, link: LinkGroup, rates: int) -> bool:
    """Return True for links that neither boxes nor the heading describe, and for bottlenecks, if they are few."""
    tiers = (link.lower.tier, link.upper.tier)
    if sum((each.lower.tier, each.upper.tier) == tiers for each in grouped.links) > MAX_LABELS:
        return False
    is_one_each = len(link.links) == len(link.lower.names) and len(link.upper.names) == 1
    is_described = is_one_each and tiers[0] < tiers[1] and rates <= len(RATES)
    return link.is_bottleneck or not is_described


def _label(link: LinkGroup) -> str:
    """Return the number of links, and how many each node has; of bottlenecks, names and rates too."""
    count = len(link.links)
    rate = f"{link.rate_gbps:g} Gbit/s"
    if count == 1:
        return f"{link.links[0].name}: {rate}" + ("\nbottleneck" if link.is_bottleneck else "")
    lines = [f"{count:,} links"]
    if len(link.lower.names) > 1 and len(link.upper.names) > 1:
        lines.append(f"each below has {count / len(link.lower.names):g}, each above {count / len(link.upper.names):g}")
    if link.is_bottleneck:
        lines.append(f"bottleneck: {', '.join(each.name for each in link.links if each.bottleneck)}, {rate}")
    return "\n".join(lines)


def _line_width(number: int) -> float:
    """Return the width of a line by the place of its rate among all rates."""
    return 1.2 + 0.9 * min(number, len(RATES) - 1)
