# SPDX-License-Identifier: Apache-2.0
"""The affinity graph of jobs and the links that they share: unique time-shifts, as a table, a record and a picture."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.reading.cells import CellId
from analysis.render import style
from analysis.render.tables import Cell, Column, Section, Table
from roundabout.models.cassini import Candidate, ScoredCandidate, best_rotations
from roundabout.spec import TrialSpec
from roundabout.spec.base import Level

LINK = "#57606a"
ROW_INCHES = 0.62
NOTED = 0.4
"""Position of an edge's label, as a share of the way from job to link."""
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}


def place_jobs(name: str, spec: TrialSpec) -> ScoredCandidate:
    """Return the scored placement of a trial's jobs, called `name`. Raises CassiniError, for example for a loop."""
    links = best_rotations(spec)
    crossing = {link: tuple(circle.job for circle in found.unified.circles) for link, found in links.items()}
    return ScoredCandidate(Candidate(name, crossing), fmean([found.score for found in links.values()] or [1.0]), links)


def placements(cells: Iterable[tuple[Mapping[str, Level], TrialSpec]]) -> list[ScoredCandidate]:
    """Return a scored placement for each combination of levels other than the variant in which jobs share links."""
    specs: dict[str, TrialSpec] = {}
    for levels, spec in cells:
        if spec.has_concurrent_jobs:
            specs.setdefault(CellId(levels).other_levels, spec)
    return [place_jobs(name, spec) for name, spec in specs.items()]


def table(found: Sequence[ScoredCandidate]) -> Table:
    """Return a table with a row for each edge, which is a job on a link."""
    columns = (
        Column("link", kind="names"),
        Column("score", ".3f"),
        Column("job", kind="words"),
        Column("time-shift on it, ms", ".1f"),
        Column("for all links, ms", ".1f"),
    )
    sections = (Section(tuple(_rows(each)), each.candidate.name) for each in found if each.links)
    return Table(columns, tuple(sections), "One time-shift a job", empty="No jobs share a link.")


def _rows(found: ScoredCandidate) -> Iterable[tuple[Cell, ...]]:
    shifts_ms = found.shifts_ms
    for link, weights in found.weights.items():
        for place, (job, ms) in enumerate(weights.items()):
            first = (link, found.links[link].score) if place == 0 else ("", None)
            yield tuple(map(Cell, (*first, job, ms, shifts_ms[job])))


def record(found: ScoredCandidate) -> dict[str, Any]:
    """Return the placements as JSON-compatible values."""
    scores = {link: each.score for link, each in found.links.items()}
    return {
        "placement": found.candidate.name,
        "score": found.score,
        "links": [
            {"link": link, "score": scores[link], "shifts_ms": weights} for link, weights in found.weights.items()
        ],
        "shifts_ms": found.shifts_ms,
    }


def figure(found: Sequence[ScoredCandidate]) -> Figure:
    """Draw the affinity graphs: jobs on the left, shared links on the right, and the time-shift on each edge."""
    drawn = [each for each in found if each.links]
    most = max((max(len(each.links), len(each.shifts_ms)) for each in drawn), default=1)
    result, axes = style.new_panels(max(len(drawn), 1), 0.5 + ROW_INCHES * max(most, 2))
    if not drawn:
        style.add_note(axes[0], 0.5, 0.5, "no jobs share a link", xycoords="axes fraction", ha="center")
    for panel in axes:
        panel.set_axis_off()
        panel.set_xlim(-0.55, 1.45)
        panel.set_ylim(most - 0.4, -0.6)
    for panel, each in zip(axes, drawn, strict=False):
        _draw(panel, each, most)
        panel.set_title(each.candidate.name)
    return result


def _draw(panel: Axes, found: ScoredCandidate, most: int) -> None:
    shifts_ms, colours = found.shifts_ms, style.job_colours(sorted(found.shifts_ms))
    at_job, at_link = (_spread_heights(names, most) for names in (shifts_ms, found.links))
    for link, weights in found.weights.items():
        for job, ms in weights.items():
            panel.plot([0, 1], [at_job[job], at_link[link]], color=colours[job], linewidth=1.6, zorder=1)
            height = at_job[job] + NOTED * (at_link[link] - at_job[job])
            style.add_note(panel, NOTED, height, f"{ms:.0f} ms", colours[job], ha="center", bbox=PAPER)
    for job, height in at_job.items():
        panel.scatter([0], [height], s=150, color=colours[job], zorder=2)
        style.add_note(
            panel, 0, height, f"{job}\nshift {shifts_ms[job]:.0f} ms", style.INK, ha="right", offset=(-10, 0)
        )
    for link, height in at_link.items():
        panel.scatter([1], [height], s=130, color=LINK, marker="s", zorder=2)
        text = f"{link}\nscore {found.links[link].score:.2f}"
        style.add_note(panel, 1, height, text, style.INK, ha="left", offset=(10, 0))


def _spread_heights(names: Iterable[str], most: int) -> dict[str, float]:
    """Return heights of vertices of one kind, in their order, evenly over those of the larger kind."""
    listed = list(names)
    return {name: (place + 0.5) * most / len(listed) - 0.5 for place, name in enumerate(listed)}
