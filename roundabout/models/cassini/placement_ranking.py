# SPDX-License-Identifier: Apache-2.0
"""Algorithm 2: the ranking of candidate placements by compatibility, and their time-shifts.

Source: the interleaving thesis, section 4.4.2.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from roundabout.models.cassini.affinity_graph import find_loop, link_bundles, time_shifts
from roundabout.models.cassini.circles import Circle
from roundabout.models.cassini.errors import CassiniError
from roundabout.models.cassini.rotations import Rotations, SharedLink, rotate_bundle

MAX_CANDIDATES = 10
"""Largest number of candidate placements (the interleaving thesis, section 4.5.1)."""


@dataclass(frozen=True)
class Candidate:
    """A candidate placement: the jobs that cross each link."""

    name: str
    crossing: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class ScoredCandidate:
    """A candidate without loops, with its score and the rotations on its shared links."""

    candidate: Candidate
    score: float
    links: Mapping[str, Rotations]

    @property
    def weights(self) -> dict[str, dict[str, float]]:
        """Return the time-shift of each job on each link, ms."""
        return {
            link: {circle.job: ms for circle, ms in zip(found.unified.circles, found.shifts_ms, strict=True)}
            for link, found in self.links.items()
        }

    @property
    def shifts_ms(self) -> dict[str, float]:
        """Return the unique time-shift of each job that shares a link (Algorithm 1)."""
        circles = (circle for found in self.links.values() for circle in found.unified.circles)
        return time_shifts(self.weights, {circle.job: circle.iteration_ms for circle in circles})


@dataclass(frozen=True)
class PlacementRanking:
    """The candidates without loops, the most compatible first, and the loop of each other candidate."""

    ranked: tuple[ScoredCandidate, ...]
    loops: Mapping[str, tuple[str, ...]]


def rank_placements(  # noqa: PLR0913 - the last three have defaults, the paper's
    candidates: Sequence[Candidate],
    circles: Mapping[str, Circle],
    capacity_gbps: Mapping[str, float],
    *,
    precision_deg: float | None = None,
    over: Callable[[Iterable[float]], float] = fmean,
    mapped: Callable[..., Iterable[Any]] = map,
) -> PlacementRanking:
    """Rank candidate placements by their links' scores; those whose affinity graph has a loop are excluded.

    Args:
        candidates: the placements, with unique names; equally good ones stay in their order.
        circles: the circle of each job.
        capacity_gbps: the capacity of each link.
        precision_deg: see `rotate`.
        over: makes one score of those of a placement's links: their mean as printed, `min` for the worst. A placement
            in which no jobs meet has 1.
        mapped: `map`, or one that works in parallel, as an executor's; what it maps can be pickled.

    Raises:
        CassiniError: every candidate has a loop, or a link's jobs fit on no circle.
    """
    loops = {candidate.name: found for candidate in candidates if (found := find_loop(candidate.crossing))}
    kept = [candidate for candidate in candidates if candidate.name not in loops]
    if not kept:
        raise CassiniError(f"found a loop in each of {len(candidates)} placements, expected one without at least")
    bundles = {candidate.name: _bundles(candidate, circles, capacity_gbps) for candidate in kept}
    different = list(dict.fromkeys(tuple(links.values()) for found in bundles.values() for links in found))
    solved = dict(zip(different, mapped(partial(rotate_bundle, precision_deg=precision_deg), different), strict=True))
    scored = []
    for candidate in kept:
        links = {
            link: rotations
            for bundle in bundles[candidate.name]
            for link, rotations in zip(bundle, solved[tuple(bundle.values())], strict=True)
        }
        scored.append(ScoredCandidate(candidate, over([each.score for each in links.values()] or [1.0]), links))
    return PlacementRanking(tuple(sorted(scored, key=lambda each: -each.score)), loops)


def _bundles(
    candidate: Candidate, circles: Mapping[str, Circle], capacity_gbps: Mapping[str, float]
) -> list[dict[str, SharedLink]]:
    """Return the shared links of each bundle by name, with jobs in the order of the bundle's first link."""
    bundles = []
    for links in link_bundles(candidate.crossing):
        jobs = tuple(circles[job] for job in dict.fromkeys(candidate.crossing[links[0]]))
        bundles.append({link: SharedLink(jobs, capacity_gbps[link]) for link in links})
    return bundles
