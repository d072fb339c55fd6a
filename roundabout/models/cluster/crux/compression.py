# SPDX-License-Identifier: Apache-2.0
"""Compression of jobs' priorities into the few levels of switches. Source: Crux, section 4.3.

Jobs that contend are joined by an edge from the higher to the lower priority, so that the graph has no cycle. A
compression cuts the graph into levels, and no edge leads upwards. An edge within a level is a loss of its weight.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt

ORDERS = 10
"""Number of random topological orders that are cut. A guess: our copy of the paper prints no number.

More orders lose less where levels are scarce, and take more time.
"""

Edge = tuple[str, str]
"""A job of higher priority, and a job of lower priority that contends with it."""


def compress_priorities(order: Sequence[str], weights: Mapping[Edge, float], levels: int) -> dict[str, int]:
    """Return each job's level from 1 to `levels`; higher levels come first.

    If `levels` suffice, every edge leads downwards. Else the best of several topological orders is cut, each at the
    best places.

    Args:
        order: the jobs in falling order of priority.
        weights: the loss for each edge if both jobs have one level.
        levels: the number of levels.
    """
    if not order:
        return {}
    depths = _depths(order, weights)
    orders = [sorted(order, key=depths.__getitem__)]
    if max(depths.values()) >= levels:
        random = Random(0)
        orders += [_draw_order(order, weights, random) for _ in range(ORDERS)]
    cuts = [_cut_order(each, weights, levels) for each in orders]
    (_, places), best = min(zip(cuts, orders, strict=True), key=lambda found: found[0][0])
    segments = (best[begin:end] for begin, end in pairwise(places))
    return {job: levels - number for number, segment in enumerate(segments) for job in segment}


def _depths(order: Sequence[str], weights: Mapping[Edge, float]) -> dict[str, int]:
    """Return the number of edges of the longest path to each job."""
    depths: dict[str, int] = {}
    for job in order:
        depths[job] = max((depths[higher] + 1 for higher in depths if (higher, job) in weights), default=0)
    return depths


def _draw_order(order: Sequence[str], weights: Mapping[Edge, float], random: Random) -> list[str]:
    """Return a random topological order: each next job is drawn from those without a contending job above them."""
    left, found = list(order), list[str]()
    while left:
        free = [job for job in left if not any((other, job) in weights for other in left)]
        found.append(random.choice(free))
        left.remove(found[-1])
    return found


def _cut_order(order: Sequence[str], weights: Mapping[Edge, float], levels: int) -> tuple[float, list[int]]:
    """Cut an order into at most `levels` segments with the least weight of edges within segments.

    Return the weight, and the places of the cuts with both ends. Of equal cuts the one with fewest segments is taken.
    """
    inside = _weights_inside(order, weights)
    count = len(order)
    least = inside[0]  # weight of the first jobs, up to each place, in one segment
    begins: list[npt.NDArray[np.intp]] = []
    best = float(least[-1]), 1
    for segments in range(2, min(levels, count) + 1):
        sums = least[:count, None] + inside
        begins.append(sums.argmin(axis=0))
        least = sums.min(axis=0)
        best = min(best, (float(least[-1]), segments))
    places = [count]
    for begin in begins[: best[1] - 1][::-1]:
        places.append(int(begin[places[-1]]))
    return best[0], [0, *places[::-1]]


def _weights_inside(order: Sequence[str], weights: Mapping[Edge, float]) -> npt.NDArray[np.float64]:
    """Return the weights of edges between the jobs from the row's place to the column's, which is excluded."""
    at = {job: place for place, job in enumerate(order)}
    own = np.zeros((len(order), len(order)))
    for (higher, lower), weight in weights.items():
        own[at[higher], at[lower]] = weight
    of_column = own[::-1].cumsum(axis=0)[::-1]
    return np.hstack([np.zeros((len(order), 1)), of_column.cumsum(axis=1)])
