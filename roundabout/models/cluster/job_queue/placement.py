# SPDX-License-Identifier: Apache-2.0
"""Which free servers a job of the queue gets: as few racks as possible, and pods before racks."""

import numpy as np

from roundabout.models.cluster.job_queue.fabric import Racks
from roundabout.models.cluster.job_queue.job_shape import Ints


def find_servers(free: Ints, needed: int, racks: Racks) -> Ints:
    """Return the first free servers of the fullest rack that has enough, or else all of the emptiest, and so on.

    If there are pods, they are chosen in this way first, and then racks in each.

    Args:
        free: the free servers, in ascending order; at least as many as are needed.
        needed: the number of servers.
        racks: the racks of servers, and pods of racks to place jobs by, if any.
    """
    if racks.pods is None:
        return np.concatenate(_by_group(free, racks.of_server, needed))[:needed]
    found: list[Ints] = []
    for own in _by_group(free, racks.pods[racks.of_server], needed):
        count = min(needed - sum(map(len, found)), own.size)
        found.append(find_servers(own, count, Racks(racks.of_server)))
    return np.concatenate(found)


def _by_group(free: Ints, group_of: Ints, needed: int) -> list[Ints]:
    """Return the free servers of the fullest group that has enough, or else those of all, of the emptiest first."""
    counts = np.bincount(group_of[free], minlength=group_of.max() + 1)
    fitting = np.flatnonzero(counts >= needed)
    order = fitting[[counts[fitting].argmin()]] if fitting.size else np.argsort(-counts, kind="stable")
    return [free[group_of[free] == group] for group in order]
