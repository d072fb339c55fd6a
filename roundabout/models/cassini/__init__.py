# SPDX-License-Identifier: Apache-2.0
"""Cassini: the compatibility of jobs on a link, and the time-shifts by which their demands interleave.

The package is pure geometry, after the interleaving thesis, chapter 4; docs/explanation/cassini.md explains how we read
the thesis' equations.
"""

from roundabout.models.cassini.affinity_graph import find_loop, link_bundles, pick_shifts, shared_links, time_shifts
from roundabout.models.cassini.circles import Arc, Circle, UnifiedCircle, circle_of, unify
from roundabout.models.cassini.errors import CassiniError, LoopError
from roundabout.models.cassini.joint_rotations import JointRotations, rotate_jointly
from roundabout.models.cassini.placement_ranking import Candidate, PlacementRanking, ScoredCandidate, rank_placements
from roundabout.models.cassini.rotations import Rotations, SharedLink, rotate, rotate_bundle
from roundabout.models.cassini.timetables import (
    best_rotations,
    joint_timetables,
    lowest_score,
    timetables,
    unified_circles,
    with_most_room,
)

__all__ = [
    "Arc",
    "Candidate",
    "CassiniError",
    "Circle",
    "JointRotations",
    "LoopError",
    "PlacementRanking",
    "Rotations",
    "ScoredCandidate",
    "SharedLink",
    "UnifiedCircle",
    "best_rotations",
    "circle_of",
    "find_loop",
    "joint_timetables",
    "link_bundles",
    "lowest_score",
    "pick_shifts",
    "rank_placements",
    "rotate",
    "rotate_bundle",
    "rotate_jointly",
    "shared_links",
    "time_shifts",
    "timetables",
    "unified_circles",
    "unify",
    "with_most_room",
]
