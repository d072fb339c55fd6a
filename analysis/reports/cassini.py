# SPDX-License-Identifier: Apache-2.0
"""Jobs of one link on their unified circle: Cassini's result as a table, a record and a picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.projections.polar import PolarAxes

from analysis.render import style
from analysis.render.tables import Cell, Column, Table, one_section
from roundabout.models.cassini import Rotations
from roundabout.models.cassini.circles import Floats

HUB, RIM = 0.42, 1.0
"""Radii between which jobs' rings lie; the total demand is drawn outwards from `RIM`."""
BAND, MAX_BANDS = 0.5, 1.0
"""Height at which the link's capacity is drawn, and the largest height of the total demand."""
EXCESS = "#b42318"


def table(found: Rotations) -> Table:
    """Return a table with a row for each job: iteration time, turns, rotation and time-shift."""
    columns = (
        Column("job", kind="names"),
        Column("iteration,\nms", ".1f"),
        Column("turns", ".0f"),
        Column("stretched,\n%", "+.2f"),
        Column("rotation,\ndegrees", ".1f"),
        Column("time-shift,\nms", ".1f"),
    )
    unified = found.unified
    jobs = zip(unified.circles, unified.turns, unified.errors, found.degrees, found.shifts_ms, strict=True)
    rows = (
        (Cell(circle.job), *map(Cell, (circle.iteration_ms, turns, 100 * error, degrees, shift_ms)))
        for circle, turns, error, degrees, shift_ms in jobs
    )
    return Table(columns, one_section(rows), f"Unified circle of {unified.perimeter_ms:.2f} ms")


def verdict(found: Rotations, given_ms: Sequence[float] | None = None) -> str:
    """Return lines of text: the score, its uncertainty, and the jobs that lower it by themselves.

    With `given_ms` a line gives the score of these time-shifts.
    """
    room = "with one job at a time" if found.strict else f"at {_describe_room(found)}"
    fits = ", fully compatible" if found.excess_gbps == 0 else ""
    lines = [f"score {found.score:.4f} {room}{fits}; unrotated {found.score_unrotated:.4f}"]
    if found.is_best:
        lines.append(
            f"the highest of all rotations in {found.sectors} sectors, of {360 / found.sectors:.2g} degrees each"
        )
    else:
        best = f"the best could be {found.score_bound:.4f}"
        lines.append(f"the highest found in {found.sectors} sectors; the search was cut short: {best}")
    lines.append(f"sectors make the score uncertain by {found.score_error:.4f} at most")
    if given_ms:
        lines.append(f"shifted by {', '.join(f'{ms:g}' for ms in given_ms)} ms: score {found.score_at(given_ms):.4f}")
    lines += [
        f"{circle.job} requires {most:.1f} Gbit/s, more than the link has: it lowers the score on its own"
        for circle, most in zip(found.unified.circles, found.demands_gbps.max(axis=1), strict=True)
        if most > found.capacity_gbps
    ]
    return "\n".join(lines)


def _describe_room(found: Rotations) -> str:
    return "one job at a time" if found.strict else f"{found.capacity_gbps:g} Gbit/s"


def record(found: Rotations, given_ms: Sequence[float] | None = None) -> dict[str, Any]:
    """Return the result as JSON-compatible values."""
    unified = found.unified
    return {
        "capacity_gbps": None if found.strict else found.capacity_gbps,
        "strict": found.strict,
        "perimeter_ms": unified.perimeter_ms,
        "sectors": found.sectors,
        "score": found.score,
        "score_bound": found.score_bound,
        "score_error": found.score_error,
        "score_unrotated": found.score_unrotated,
        "is_best": found.is_best,
        "score_of_given_shifts": found.score_at(given_ms) if given_ms else None,
        "jobs": [
            {
                "job": circle.job,
                "iteration_ms": circle.iteration_ms,
                "turns": turns,
                "quantised_ms": own_ms,
                "rotation_deg": degrees,
                "shift_ms": shift_ms,
                "drift_ms_per_perimeter": drift_ms,
            }
            for circle, turns, own_ms, degrees, shift_ms, drift_ms in zip(
                unified.circles,
                unified.turns,
                unified.iterations_ms,
                found.degrees,
                found.shifts_ms,
                unified.drifts_ms,
                strict=True,
            )
        ],
    }


def figure(found: Rotations) -> Figure:
    """Draw the circles before and after rotation: a ring for each job, and their total demand around the rings."""
    drawn, axes = style.new_figure(1, 2, 5.6, subplot_kw={"projection": "polar"})
    jobs = [circle.job for circle in found.unified.circles]
    colours = list(style.job_colours(jobs).values())
    sides = (
        ("Before rotation", found.demands_gbps, (0.0,) * len(jobs), found.score_unrotated),
        ("After rotation", found.rotated_gbps, found.degrees, found.score),
    )
    most = max(1.0, *(float(demands.sum(axis=0).max()) / found.capacity_gbps for _, demands, _, _ in sides))
    band = min(BAND, MAX_BANDS / most)
    for panel, (title, demands, degrees, score) in zip(axes, sides, strict=True):
        assert isinstance(panel, PolarAxes)
        panel.set_ylim(0, RIM + band * most + 0.04)
        _draw_rings(panel, found, degrees, colours)
        _draw_stacked(panel, band * demands / found.capacity_gbps, band, colours)
        _label_perimeter(panel, found)
        style.add_note(panel, _emptiest_angle(demands), RIM + band, _describe_room(found), style.INK, ha="center")
        panel.set_title(f"{title}: score {score:.2f}", loc="center")
    shifted = zip(jobs, found.shifts_ms, found.degrees, strict=True)
    key = [f"{job}, {f'shifted by {ms:.1f} ms ({angle:.1f}°)' if ms else 'not shifted'}" for job, ms, angle in shifted]
    patches = [Patch(color=colour) for colour in colours]
    if most > 1:
        key, patches = [*key, "more than the link carries"], [*patches, Patch(color=EXCESS)]
    drawn.legend(patches, key, loc="outside lower center", ncols=2, fontsize=8.5)
    return drawn


def _emptiest_angle(demands: Floats) -> float:
    """Return an angle beside the axes where a label hides little."""
    angles = np.pi / 8 * np.arange(1, 16, 2)
    sectors = (angles / (2 * np.pi) * demands.shape[1]).astype(int)
    return float(angles[demands.sum(axis=0)[sectors].argmin()])


def _draw_rings(panel: PolarAxes, found: Rotations, degrees: tuple[float, ...], colours: list[str]) -> None:
    """Draw a ring for each job, the first outermost, an arc for each Up phase, the paler the lower its rate."""
    unified, width = found.unified, (RIM - HUB) / len(colours)
    highest = max((arc.gbps for circle in unified.circles for arc in circle.arcs), default=0) or 1
    for place, (circle, turns) in enumerate(zip(unified.circles, unified.turns, strict=True)):
        bottom = RIM - (place + 0.88) * width
        look: dict[str, Any] = {"height": 0.76 * width, "bottom": bottom, "align": "edge", "linewidth": 0}
        panel.bar(0, width=2 * np.pi, color=style.FAINT, **look)
        for turn in range(turns):
            for arc in circle.arcs:
                begin, end = ((turn + ms / circle.iteration_ms) / turns for ms in (arc.begin_ms, arc.end_ms))
                angle = 2 * np.pi * (begin + degrees[place] / 360)
                shade = 0.3 + 0.7 * arc.gbps / highest
                panel.bar(angle, width=2 * np.pi * (end - begin), color=colours[place], alpha=shade, **look)


def _draw_stacked(panel: PolarAxes, heights: Floats, band: float, colours: list[str]) -> None:
    """Draw stacked demands, the circle of the link's capacity, and the excess."""
    levels = RIM + np.vstack([np.zeros(heights.shape[1]), np.cumsum(heights, axis=0)])
    for low, high, colour in zip(levels, levels[1:], colours, strict=False):
        _draw_arcs(panel, low, high, color=colour, alpha=0.75)
    _draw_arcs(panel, np.full_like(levels[-1], RIM + band), np.maximum(levels[-1], RIM + band), color=EXCESS)
    around = np.linspace(0, 2 * np.pi, 720)
    panel.plot(around, np.full_like(around, RIM), color=style.INK, linewidth=0.8)
    panel.plot(around, np.full_like(around, RIM + band), color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)))


def _draw_arcs(panel: PolarAxes, low: Floats, high: Floats, **look: Any) -> None:
    """Draw the area between two levels, given by sectors: an arc for each run of equal sectors."""
    changes = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0)) + 1
    begins = np.concatenate(([0], changes))
    widths = np.diff(np.concatenate((begins, [low.size])))
    some = (high > low)[begins]
    begins, widths = begins[some], widths[some]
    turn = 2 * np.pi / low.size
    heights = (high - low)[begins]
    panel.bar(begins * turn, heights, widths * turn, low[begins], align="edge", linewidth=0, **look)


def _label_perimeter(panel: PolarAxes, found: Rotations) -> None:
    """Label instants of the perimeter instead of degrees."""
    quarters = np.arange(4) / 4
    panel.set_xticks(2 * np.pi * quarters, [f"{part * found.unified.perimeter_ms:.0f} ms" for part in quarters])
    panel.tick_params(axis="x", pad=8)
    panel.set_yticks([])
    panel.grid(visible=False)
    panel.spines["polar"].set_visible(False)
