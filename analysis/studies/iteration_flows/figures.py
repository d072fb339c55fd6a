# SPDX-License-Identifier: Apache-2.0
"""The figures of iterations' flows: the ring (Figure 3-9), and the rates (Figures 3-10 and 3-11)."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.reading.cross_traffic.iteration_flows import WORKERS, FlowReadings, RingFlows
from analysis.render.style import JOBS, SOFT, draw_level, draw_word_key, new_figure

EXCERPT_MS = 700.0
"""Length of the drawn excerpt around the beginning of an iteration, ms."""
READINGS = 1500
"""Largest number of drawn readings of a flow; more would hide each other."""
COLOURS = dict(zip((*WORKERS, 3), JOBS, strict=False))
KEY = {
    "flow 1, without congestion": COLOURS[1],
    "flow 2, congested": COLOURS[2],
    "flow 3, cross traffic": COLOURS[3],
}


def by_model(found: Sequence[RingFlows]) -> dict[str, list[RingFlows]]:
    """Return the cells of each model, in the experiment's order."""
    return {model: [each for each in found if each.model == model] for model in dict.fromkeys(e.model for e in found)}


def draw_ring(found: Sequence[RingFlows]) -> Figure | None:
    """Draw the workers in a ring, and the host that sends cross traffic to one of them (Figure 3-9)."""
    if not found:
        return None
    result, (panel,) = new_figure(1, 1, 2.6)
    one, two, three = (flow.host for flow in next(iter(found[0].flows.values())))
    places = _places(found[0].spec.workers, two, three)
    colours = {one: COLOURS[1], two: COLOURS[2], three: COLOURS[3]}
    for sender, receiver in (*found[0].spec.pairs, (three, two)):
        look = {"arrowstyle": "->", "color": colours.get(sender, SOFT), "lw": 2, "shrinkA": 16, "shrinkB": 16}
        panel.annotate("", places[receiver], places[sender], arrowprops=look)
    for host, (x, y) in places.items():
        panel.text(x, y, host, ha="center", va="center", weight="bold")
    panel.set(xlim=(-2.5, 4), ylim=(-1.3, 1.3), aspect="equal")
    panel.set_axis_off()
    draw_word_key(panel, KEY)
    return result


def draw_rates(found: Sequence[RingFlows]) -> Figure | None:
    """Draw the first repetition's readings around the begin of its middle iteration, one panel for each cell."""
    if not found:
        return None
    result, panels = new_figure(len(found), 1, 0.6 + 2.1 * len(found), sharex=True)
    for panel, each in zip(panels, found, strict=True):
        _cell(panel, each)
    draw_word_key(panels[0], KEY)
    panels[-1].set_xlabel("ms")
    return result


def _places(workers: Sequence[str], congested: str, sender: str) -> dict[str, tuple[float, float]]:
    """Return workers on a circle, the congested one at its right, and the sender beside it."""
    ahead = workers.index(congested)
    angles = (2 * math.pi * (place - ahead) / len(workers) for place in range(len(workers)))
    on_circle = ((math.cos(angle), math.sin(angle)) for angle in angles)
    return {**dict(zip(workers, on_circle, strict=True)), sender: (3.0, 0.0)}


def _cell(panel: Axes, found: RingFlows) -> None:
    trial = next(iter(found.flows))
    begins_ns = found.begins_ns[trial]
    zero_ns = int(begins_ns[len(begins_ns) // 2])
    for colour, flow in zip(COLOURS.values(), found.flows[trial], strict=True):
        _readings(panel, flow, zero_ns, colour)
    for begin_ms in (begins_ns - zero_ns) / 1e6:
        panel.axvline(begin_ms, color=SOFT, linewidth=0.8, zorder=1)
    link_gbps = found.cell.spec.topology.bottleneck.payload_rate_gbps
    panel.set_xlim(-EXCERPT_MS / 2, EXCERPT_MS / 2)
    panel.set_ylim(0, 1.25 * link_gbps)
    draw_level(panel, link_gbps, f"the link carries {link_gbps:g}")
    panel.set_title(f"{found.model}, {found.asked_gbps:g} Gbit/s")
    panel.set_ylabel("Gbit/s")


def _readings(panel: Axes, flow: FlowReadings, zero_ns: int, colour: str) -> None:
    at_ms = (flow.at_ns - zero_ns) / 1e6
    seen = np.flatnonzero(np.abs(at_ms) <= EXCERPT_MS / 2)
    seen = seen[:: len(seen) // READINGS + 1]
    panel.plot(at_ms[seen], flow.gbps[seen], ".", markersize=3, color=colour, alpha=0.7)
