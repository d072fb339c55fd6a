# SPDX-License-Identifier: Apache-2.0
"""Cassini: the compatibility of jobs on a link, and the time-shifts by which their demands interleave.

Pure geometry, after the interleaving thesis, chapter 4; docs/cassini.md says how its equations are read.
"""

from roundabout.models.cassini.affinity import loop, shared, tie_broken, time_shifts
from roundabout.models.cassini.circles import Arc, Circle, Unified, circle_of, unify
from roundabout.models.cassini.errors import CassiniError, LoopError
from roundabout.models.cassini.joint_rotations import Together, rotate_together
from roundabout.models.cassini.placements import Candidate, Choice, Scored, choose
from roundabout.models.cassini.rotations import Rotations, rotate
from roundabout.models.cassini.timetables import crossing, held, meetings, roomy, rotations, score, timetables

__all__ = [
    "Arc",
    "Candidate",
    "CassiniError",
    "Choice",
    "Circle",
    "LoopError",
    "Rotations",
    "Scored",
    "Together",
    "Unified",
    "choose",
    "circle_of",
    "crossing",
    "held",
    "loop",
    "meetings",
    "roomy",
    "rotate",
    "rotate_together",
    "rotations",
    "score",
    "shared",
    "tie_broken",
    "time_shifts",
    "timetables",
    "unify",
]
