# SPDX-License-Identifier: Apache-2.0
"""The timetables that jobs' agents keep, from Table 4.1 on each link and Algorithm 1.

An agent can only delay iterations, so no period may be shorter than the job's iteration. If `unify` squeezes some job,
all periods are stretched.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from roundabout.models.cassini.affinity_graph import find_loop, link_bundles, time_shifts
from roundabout.models.cassini.circles import Arc, Circle, UnifiedCircle, unify
from roundabout.models.cassini.errors import CassiniError, LoopError
from roundabout.models.cassini.rotations import MAX_ROTATIONS, Rotations, SharedLink, rotate_bundle
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import THRESHOLD, Timetable


def unified_circles(spec: TrialSpec) -> dict[str, UnifiedCircle]:
    """Return the unified circle of each link that several jobs cross, by the link.

    A job's demand on a link is its demand in the busier direction. Cross traffic is ignored.

    Raises:
        CassiniError: the jobs of a link fit on no circle.
        LoopError: the affinity graph has a loop.
    """
    return {link: unify(shared.circles) for link, shared in _shared_links(spec).items()}


def _shared_links(spec: TrialSpec) -> dict[str, SharedLink]:
    """Return the links that several jobs cross, by name. Raises LoopError."""
    crossed = spec.jobs_by_link
    if found := find_loop(crossed):
        raise LoopError(found)
    circles = {job: _circles(spec, job) for job in spec.jobs}
    return {
        link.name: SharedLink(tuple(circles[job][link.name] for job in crossed[link.name]), link.payload_rate_gbps)
        for link in spec.topology.links
        if link.name in crossed
    }


def best_rotations(spec: TrialSpec) -> dict[str, Rotations]:
    """Return, by the link's name, the best rotations of the jobs on each shared link. Raises CassiniError.

    Of equally good rotations those are taken that leave most room between Up phases, up to the drift that thresholds
    allow.
    """
    links, found = _shared_links(spec), dict[str, Rotations]()
    for bundle in link_bundles({link: [circle.job for circle in shared.circles] for link, shared in links.items()}):
        rotations = with_most_room(rotate_bundle([links[link] for link in bundle]), 2 * _threshold(spec))
        found |= zip(bundle, rotations, strict=True)
    return {link: found[link] for link in links}


def lowest_score(spec: TrialSpec) -> float | None:
    """Return the lowest compatibility score of any link; 1 without shared links, None if there is no unified circle."""
    try:
        return min((found.score for found in best_rotations(spec).values()), default=1.0)
    except CassiniError:
        return None


def with_most_room(bundle: Sequence[Rotations], most: float, looked_at: int = MAX_ROTATIONS) -> tuple[Rotations, ...]:
    """Return equally good rotations of a bundle that stay as good if Up phases last longer.

    Phases are made longer by at most the share `most` of the shortest iteration. `looked_at` limits each search (`most`
    of `rotate_bundle`).
    """
    best, score = bundle[0], fmean(each.score for each in bundle)
    found, sector_ms = best.steps, best.unified.perimeter_ms / best.sectors
    for count in range(1, 1 + math.ceil(most * min(best.unified.iterations_ms) / sector_ms)):
        tried = rotate_bundle([_widened(each, count * sector_ms) for each in bundle], most=looked_at)
        if fmean(each.score for each in tried) < score:
            break
        found = tried[0].steps
    return tuple(each.with_steps(found, each.score_bound - each.score) for each in bundle)


def _widened(link: Rotations, after_ms: float) -> SharedLink:
    """Return a link whose jobs' Up phases last longer."""
    return SharedLink(tuple(circle.widen(0, after_ms) for circle in link.unified.circles), link.capacity_gbps)


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


def _circles(spec: TrialSpec, job: str) -> dict[str, Circle]:
    """Return the job's circle on each link that it crosses, by the link's name."""
    phases = spec.jobs[job].profile.phases
    ends_ms = list(itertools.accumulate(phase.duration_ms for phase in phases))
    arcs: dict[str, list[Arc]] = {hop.link.name: [] for hop in spec.hops(job)}
    for phase, end_ms in zip(phases, ends_ms, strict=True):
        busier: dict[str, float] = {}
        for hop, size in spec.bytes_by_hop(job, phase).items():
            busier[hop.link.name] = max(busier.get(hop.link.name, 0), size)
        for link, size in busier.items():
            arcs[link].append(Arc(end_ms - phase.duration_ms, end_ms, size * 8 / phase.duration_ms / 1e6))
    return {link: Circle(job, ends_ms[-1], tuple(each)) for link, each in arcs.items()}
