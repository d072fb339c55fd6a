# SPDX-License-Identifier: Apache-2.0
"""Moves of whole servers' workers until the fragments on each leaf have few flows.

A group is a stage of a job, whose rings all go around its servers. A fragment is the part of a group on a leaf, where
the group has parts on others. It has a flow for each ring. Source: as of roundabout.models.cluster.defragmentation.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from roundabout.models.cluster.defragmentation import fewest_moves
from roundabout.models.cluster.job_queue.job_shape import Bools, Ints


def limit_fragments(groups: Sequence[Ints], rings: Ints, leaf_of: Ints, most: int) -> Mapping[int, Ints]:
    """Return the new servers of groups that move, so that fragments of no leaf have more than `most` flows.

    As few servers as possible are left. Groups without a fragment on a leaf with more flows stay, unless the others
    alone cannot move so. The result is empty if no leaf has more, or if there is no such placement.

    Args:
        groups: the servers of each group.
        rings: the number of each group's rings.
        leaf_of: the leaf of each server.
        most: the most flows of fragments on a leaf.
    """
    leaves = int(leaf_of.max()) + 1
    counts = np.array([np.bincount(leaf_of[own], minlength=leaves) for own in groups]).reshape(-1, leaves)
    present = counts > 0
    split = present.sum(axis=1) > 1
    flows = rings @ (present & split[:, None])
    if flows.max(initial=0) <= most:
        return {}
    for moving in (split & present[:, flows > most].any(axis=1), split):
        room = np.bincount(leaf_of, minlength=leaves) - counts[~moving].sum(axis=0)
        bounds = most - rings @ (present & (split & ~moving)[:, None])
        wanted = fewest_moves(counts[moving], room, bounds, rings[moving])
        if wanted is not None:
            return _moved(groups, dict(zip(np.flatnonzero(moving).tolist(), wanted, strict=True)), leaf_of)
    return {}


def _moved(groups: Sequence[Ints], wanted: Mapping[int, Ints], leaf_of: Ints) -> Mapping[int, Ints]:
    """Return the servers of groups that are to have other numbers on leaves: the first ones stay, then the first free.

    Args:
        groups: the servers of all groups.
        wanted: the numbers of servers on each leaf, for groups that may move.
        leaf_of: the leaf of each server.
    """
    kept = {place: groups[place][_first(leaf_of[groups[place]], counts)] for place, counts in wanted.items()}
    free = np.ones(leaf_of.size, bool)
    for place, own in enumerate(groups):
        free[kept.get(place, own)] = False
    found = {}
    for place, counts in wanted.items():
        rest = np.flatnonzero(free)
        more = rest[_first(leaf_of[rest], counts - np.bincount(leaf_of[kept[place]], minlength=counts.size))]
        free[more] = False
        if more.size:
            found[place] = np.sort(np.concatenate([kept[place], more]))
    return found


def _first(leaves: Ints, counts: Ints) -> Bools:
    """Return which servers, by their leaves, are among the first `counts` of their leaf."""
    before = np.array([np.count_nonzero(leaves[:place] == leaf) for place, leaf in enumerate(leaves)], np.int64)
    among: Bools = before < counts[leaves]
    return among
