# SPDX-License-Identifier: Apache-2.0
"""The thesis' "complex approach": one unified circle for all links, and one rotation for each job.

Source: the interleaving thesis, section 4.4.1 (HotNets'22, section 5). The approach allows loops, and its cost grows
with the turns of all jobs.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from roundabout.models.cassini.affinity_graph import link_bundles
from roundabout.models.cassini.circles import Circle, unify
from roundabout.models.cassini.rotations import KBPS_OF_GBPS, MAX_ROTATIONS
from roundabout.models.cassini.search import best_steps


@dataclass(frozen=True)
class JointRotations:
    """A time-shift for each job that shares a link, the mean score of the shared links, and the score's upper bound."""

    shifts_ms: Mapping[str, float]
    score: float
    score_bound: float


def rotate_jointly(
    crossing: Mapping[str, Collection[str]],
    circles: Mapping[str, Circle],
    capacity_gbps: float,
    precision_deg: float | None = None,
    most: int = MAX_ROTATIONS,
) -> JointRotations:
    """Find the rotations of all jobs with the highest mean score of the links that they share.

    Args:
        crossing: the jobs on each link.
        circles: the circle of each job.
        capacity_gbps: the capacity that every link has.
        precision_deg: see `rotate`.
        most: see `rotate`.

    Raises:
        CassiniError: there is no unified circle of all jobs.
    """
    bundles = link_bundles(crossing)
    members = [tuple(dict.fromkeys(crossing[bundle[0]])) for bundle in bundles]
    jobs = list(dict.fromkeys(job for each in members for job in each))
    if not jobs:
        return JointRotations({}, 1.0, 1.0)
    unified = unify([circles[job] for job in jobs])
    sectors, capacity = unified.sectors(precision_deg), round(capacity_gbps * KBPS_OF_GBPS)
    demands = [np.rint(demand * KBPS_OF_GBPS) for demand in unified.demands_gbps(sectors)]
    crossed = [[place for place, each in enumerate(members) if job in each] for job in jobs]
    counts = [len(bundle) for bundle in bundles]
    found = best_steps(demands, unified.turns, sectors, capacity, most, crossed=crossed, counts=counts)
    shifts = (step / sectors * unified.perimeter_ms for step in found.steps)
    whole = sectors * sum(counts) * capacity
    return JointRotations(dict(zip(jobs, shifts, strict=True)), 1 - found.excess / whole, 1 - found.bound / whole)
