# SPDX-License-Identifier: Apache-2.0
"""The timetables that jobs' agents keep, from Table 4.1 on each link and Algorithm 1.

An agent can only delay iterations, so no period may be shorter than the job's iteration. If `unify` squeezes some job,
all periods are stretched.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace

from roundabout.models.cassini.affinity import find_loop, shared_links, time_shifts
from roundabout.models.cassini.circles import Arc, Circle, UnifiedCircle, unify
from roundabout.models.cassini.errors import CassiniError, LoopError
from roundabout.models.cassini.rotations import MOST, Rotations, rotate
from roundabout.spec import Link, TrialSpec
from roundabout.spec.cassini import THRESHOLD, Timetable


def unified_circles(spec: TrialSpec) -> dict[str, UnifiedCircle]:
    """Return the unified circle of each link that several jobs cross, by the link.

    A job's demand on a link is its demand in the busier direction. Cross traffic is ignored.

    Raises:
        CassiniError: the jobs of a link fit on no circle.
        LoopError: the affinity graph has a loop.
    """
    crossed = jobs_by_link(spec)
    if found := find_loop(crossed):
        raise LoopError(found)
    links = {link.name: link for link in spec.topology.links}
    return {link: unify([_circle(spec, name, links[link]) for name in jobs]) for link, jobs in crossed.items()}


def jobs_by_link(spec: TrialSpec) -> dict[str, tuple[str, ...]]:
    """Return, by the link's name, the jobs on each link that several jobs cross."""
    return shared_links(
        {
            link.name: [name for name in spec.jobs if any(hop.link == link for hop in spec.hops(name))]
            for link in spec.topology.links
        }
    )


def best_rotations(spec: TrialSpec) -> dict[str, Rotations]:
    """Return, by the link's name, the best rotations of the jobs on each shared link. Raises CassiniError.

    Of equally good rotations those are taken that leave most room between Up phases, up to the drift that thresholds
    allow.
    """
    capacity_gbps = {link.name: link.payload_rate_gbps for link in spec.topology.links}
    most = 2 * _threshold(spec)
    return {
        link: with_most_room(rotate(unified, capacity_gbps[link]), most)
        for link, unified in unified_circles(spec).items()
    }


def lowest_score(spec: TrialSpec) -> float | None:
    """Return the lowest compatibility score of any link; 1 without shared links, None if there is no unified circle."""
    try:
        return min((found.score for found in best_rotations(spec).values()), default=1.0)
    except CassiniError:
        return None


def with_most_room(best: Rotations, most: float, looked_at: int = MOST) -> Rotations:
    """Return equally good rotations that stay as good if Up phases last longer, by at most the share `most`.

    `most` is a share of the shortest iteration, and `looked_at` limits each search (`most` of `rotate`).
    """
    found, sector_ms = best, best.unified.perimeter_ms / best.sectors
    for count in range(1, 1 + math.ceil(most * min(best.unified.iterations_ms) / sector_ms)):
        circles = tuple(circle.widen(0, count * sector_ms) for circle in best.unified.circles)
        tried = rotate(replace(best.unified, circles=circles), best.capacity_gbps, most=looked_at)
        if tried.score < best.score:
            break
        found = replace(best, steps=tried.steps)
    return found


def timetables(spec: TrialSpec) -> dict[str, Timetable]:
    """Return, by the job's name, the timetable of each job that shares a link. Raises CassiniError."""
    return joint_timetables(best_rotations(spec), _threshold(spec), {})


def joint_timetables(
    links: Mapping[str, Rotations], threshold: float, spare_ms: Mapping[str, float]
) -> dict[str, Timetable]:
    """Return, by name, the timetable of each job on shared links: one time-shift and one period for all its links.

    Args:
        links: the rotations of the jobs on each link.
        threshold: the timetables' threshold, as a share of the period.
        spare_ms: the least excess of a job's period over its iteration, by job; 0 for other jobs.

    Raises:
        LoopError: the affinity graph has a loop.
    """
    periods_ms = _periods_ms({link: found.unified for link, found in links.items()}, spare_ms)
    weights = {
        link: {
            circle.job: step / found.sectors * turns * periods_ms[circle.job] % periods_ms[circle.job]
            for circle, turns, step in zip(found.unified.circles, found.unified.turns, found.steps, strict=True)
        }
        for link, found in links.items()
    }
    return {
        job: Timetable(shift_ms=shift_ms, period_ms=periods_ms[job], threshold_ms=threshold * periods_ms[job])
        for job, shift_ms in time_shifts(weights, periods_ms).items()
    }


def _threshold(spec: TrialSpec) -> float:
    return spec.cassini.threshold if spec.cassini else THRESHOLD


def _periods_ms(links: Mapping[str, UnifiedCircle], spare_ms: Mapping[str, float]) -> dict[str, float]:
    """Return the shortest periods with whole numbers of turns on all links and no job slower than it is alone."""
    periods: dict[str, float] = {}
    left = dict(links)
    while left:
        near = (link for link, unified in left.items() if any(circle.job in periods for circle in unified.circles))
        unified = left.pop(next(near, next(iter(left))))
        turns = {circle.job: count for circle, count in zip(unified.circles, unified.turns, strict=True)}
        around_ms = next((periods[job] * turns[job] for job in turns if job in periods), unified.perimeter_ms)
        periods |= {job: around_ms / count for job, count in turns.items()}
    circles = (circle for unified in links.values() for circle in unified.circles)
    least = ((circle.iteration_ms + spare_ms.get(circle.job, 0.0)) / periods[circle.job] for circle in circles)
    stretch = max(least, default=1.0)
    return {job: stretch * ms for job, ms in periods.items()}


def _circle(spec: TrialSpec, name: str, link: Link) -> Circle:
    phases = spec.jobs[name].profile.phases
    ends_ms = list(itertools.accumulate(phase.duration_ms for phase in phases))
    arcs = []
    for phase, end_ms in zip(phases, ends_ms, strict=True):
        sizes = [size for hop, size in spec.bytes_by_hop(name, phase).items() if hop.link == link]
        if sizes:
            arcs.append(Arc(end_ms - phase.duration_ms, end_ms, max(sizes) * 8 / phase.duration_ms / 1e6))
    return Circle(name, ends_ms[-1], tuple(arcs))
