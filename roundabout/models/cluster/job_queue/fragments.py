# SPDX-License-Identifier: Apache-2.0
"""Moves of whole servers' workers until the fragments in each rack have few flows.

A group is a stage of a job, whose rings all go around its servers. A fragment is the part of a group in a rack, where
the group has parts in others. It has a flow for each ring. Source: as of roundabout.models.cluster.defragmentation.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from roundabout.models.cluster.defragmentation import PodBound, fewest_moves
from roundabout.models.cluster.job_queue.fabric import Racks
from roundabout.models.cluster.job_queue.job_shape import Bools, Ints


def limit_fragments(groups: Sequence[Ints], rings: Ints, racks: Racks, most: int) -> Mapping[int, Ints]:
    """Return the new servers of groups that move, so that fragments of no rack have more than `most` flows.

    In three tiers fragments of no pod have more either, where a fragment is the part of a group in a pod. As few
    servers as possible are left. Groups without a fragment where there are more flows stay, unless the others alone
    cannot move so. The result is empty if nothing has more, or if there is no such placement.

    Args:
        groups: the servers of each group.
        rings: the number of each group's rings.
        racks: the racks of servers.
        most: the most flows of fragments in a rack, and in a pod.
    """
    count = int(racks.of_server.max()) + 1
    counts = np.array([np.bincount(racks.of_server[own], minlength=count) for own in groups]).reshape(-1, count)
    areas = [np.arange(count)] if racks.pods is None else [np.arange(count), racks.pods]
    parts = [_fragments(counts, area) for area in areas]
    flows = [rings @ part for part in parts]
    if max(each.max(initial=0) for each in flows) <= most:
        return {}
    split = parts[0].any(axis=1)
    crowded = np.any([part[:, own > most].any(axis=1) for part, own in zip(parts, flows, strict=True)], axis=0)
    for moving in (crowded, split):
        room = np.bincount(racks.of_server, minlength=count) - counts[~moving].sum(axis=0)
        bounds = [most - rings[~moving] @ part[~moving] for part in parts]
        pods = None if racks.pods is None else PodBound(racks.pods, bounds[1])
        wanted = fewest_moves(counts[moving], room, bounds[0], rings[moving], pods)
        if wanted is not None:
            return _moved(groups, dict(zip(np.flatnonzero(moving).tolist(), wanted, strict=True)), racks.of_server)
    return {}


def _fragments(counts: Ints, area_of: Ints) -> Bools:
    """Return which groups have a fragment in which area: a part there, and parts elsewhere.

    Args:
        counts: the servers of each group in each rack.
        area_of: the area of each rack.
    """
    present = np.array([counts[:, area_of == area].any(axis=1) for area in range(int(area_of.max()) + 1)]).T
    found: Bools = present & (present.sum(axis=1) > 1)[:, None]
    return found


def _moved(groups: Sequence[Ints], wanted: Mapping[int, Ints], rack_of: Ints) -> Mapping[int, Ints]:
    """Return the servers of groups that are to have other numbers in racks: the first ones stay, then the first free.

    Args:
        groups: the servers of all groups.
        wanted: the numbers of servers in each rack, for groups that may move.
        rack_of: the rack of each server.
    """
    kept = {place: groups[place][_first(rack_of[groups[place]], counts)] for place, counts in wanted.items()}
    free = np.ones(rack_of.size, bool)
    for place, own in enumerate(groups):
        free[kept.get(place, own)] = False
    found = {}
    for place, counts in wanted.items():
        rest = np.flatnonzero(free)
        more = rest[_first(rack_of[rest], counts - np.bincount(rack_of[kept[place]], minlength=counts.size))]
        free[more] = False
        if more.size:
            found[place] = np.sort(np.concatenate([kept[place], more]))
    return found


def _first(racks: Ints, counts: Ints) -> Bools:
    """Return which servers, by their racks, are among the first `counts` of their rack."""
    before = np.array([np.count_nonzero(racks[:place] == rack) for place, rack in enumerate(racks)], np.int64)
    among: Bools = before < counts[racks]
    return among
