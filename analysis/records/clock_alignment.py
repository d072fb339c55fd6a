# SPDX-License-Identifier: Apache-2.0
"""Alignment of the clocks of a job's ranks, by the ends of collectives in which several ranks took part."""

from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from analysis.records.call import Call, Kind, Record, RecordError

TOGETHER: tuple[Kind, ...] = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
"""Kinds of collectives that all ranks finish at nearly the same time, so their ends show the offsets of hosts' clocks.
"""

CallsByRank = dict[int, Call]
"""The records of one call, by the rank in the job that wrote each."""


def clock_offsets(records: Sequence[Record], whole: Sequence[CallsByRank]) -> tuple[int, ...]:
    """Return how far each clock is ahead of rank 0's. Raises RecordError if that cannot be told."""
    ahead = offsets_from_rank_0(records, whole)
    if apart := [rank for rank in range(len(records)) if rank not in ahead]:
        what = f"rank {apart[0]} ({records[apart[0]].path}) in no group with rank 0, nor by way of others"
        raise RecordError(f"found {what}, expected one: their clocks cannot be compared")
    return tuple(ahead[rank] for rank in range(len(records)))


def offsets_from_rank_0(records: Sequence[Record], whole: Sequence[CallsByRank]) -> dict[int, int]:
    """Return how far clocks are ahead of rank 0's, by the median over calls that ended together for two of them.

    Hosts have a clock each. A rank that shares no collective is compared by messages, which take longer to come.
    """
    ahead = {0: 0}
    links = _pairwise_offsets(records, whole)
    waiting = deque([0])
    while waiting:
        here = waiting.popleft()
        for there, between_ns in links[here].items():
            if there not in ahead:
                ahead[there] = ahead[here] + between_ns
                waiting.append(there)
    return ahead


def _pairwise_offsets(records: Sequence[Record], whole: Sequence[CallsByRank]) -> dict[int, dict[int, int]]:
    """Return, from each rank to others, how far their clocks are ahead of its own."""
    best: dict[bool, dict[tuple[int, int], list[int]]] = {True: defaultdict(list), False: defaultdict(list)}
    for taken in whole:
        kind = next(iter(taken.values())).kind
        if kind in TOGETHER or kind in ("send", "receive"):
            for one, other in pairwise(sorted(taken)):
                best[kind in TOGETHER][one, other].append(taken[other].end_ns - taken[one].end_ns)
    links: dict[int, dict[int, int]] = {rank: {} for rank in range(len(records))}
    for together in (True, False):
        for (one, other), between in best[together].items():
            between_ns = round(float(np.median([float(each - between[0]) for each in between]))) + between[0]
            links[one].setdefault(other, between_ns)
            links[other].setdefault(one, -between_ns)
    return links
