# SPDX-License-Identifier: Apache-2.0
"""Alignment of the clocks of a job's ranks, by the ends of collectives in which several ranks took part."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analysis.records.call import Call, Kind, Record, RecordError

TOGETHER: tuple[Kind, ...] = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
"""Kinds of collectives that all ranks finish at nearly the same time, so their ends show the offsets of hosts' clocks.
"""
MESSAGES: tuple[Kind, ...] = ("send", "receive")

MIN_STEP_NS = 500_000_000
"""Least distance between two levels of the differences of two clocks, ns: a guess, far above the drift of clocks
between two calls and above the distance of the ends of a collective. If it is too small, late ends look like a clock
that was set.
"""
MIN_LEVEL = 3
"""Least number of calls at a level. A lower level is a wrong time of a call, and no clock that was set."""

CallsByRank = dict[int, Call]
"""The records of one call, by the rank in the job that wrote each."""
RankPair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A clock that was set during the record: of which rank, by how much, and after how many calls of a pair of ranks.

    `left_out` are the places of the calls that were made before or after, whichever are fewer.
    """

    rank: int
    pair: RankPair
    by_ns: int
    after: int
    left_out: frozenset[int]


def find_clock_steps(whole: Sequence[CallsByRank]) -> list[ClockStep]:
    """Return the steps of clocks, at most one for each pair of ranks that shares collectives."""
    found = []
    for pair, places in _places_by_pair(whole, together=True).items():
        levels = _levels(_differences(whole, pair, places))
        if len(levels) > 1:
            found.append(_clock_step(whole, pair, places, levels))
    return found


def _clock_step(
    whole: Sequence[CallsByRank], pair: RankPair, places: Sequence[int], levels: Sequence[Sequence[int]]
) -> ClockStep:
    level_of = {places[index]: number for number, level in enumerate(levels) for index in level}
    order = _order_across_step(whole, pair, level_of)
    after = _first_change(order, level_of)
    gaps_ns = np.diff(np.array([[whole[place][rank].end_ns for place in order] for rank in pair]))
    unusual_ns = np.abs(gaps_ns[:, after - 1] - np.median(gaps_ns[0]))
    one_ns, other_ns = gaps_ns[:, after - 1].tolist()
    is_other = bool(unusual_ns[1] >= unusual_ns[0])
    in_time = sorted(level_of, key=lambda place: whole[place][pair[not is_other]].end_ns)
    left_out = frozenset(place for place, level in level_of.items() if level)
    by_ns = (other_ns - one_ns) * (1 if is_other else -1)
    return ClockStep(pair[is_other], pair, by_ns, _first_change(in_time, level_of), left_out)


def _order_across_step(whole: Sequence[CallsByRank], pair: RankPair, level_of: Mapping[int, int]) -> list[int]:
    """Return the places of the largest class of calls that are on several levels, in the order in which they were made.

    Numbers count the calls of one kind in a group. Calls without numbers are in order among those of one size.
    """
    classes: dict[tuple[Kind, str, int | None], list[int]] = defaultdict(list)
    for place in sorted(level_of):
        call = whole[place][pair[0]]
        is_sized = call.number is None and call.kind != "all-to-all"
        classes[call.kind, call.group, call.payload_bytes if is_sized else None].append(place)
    largest_first = sorted(classes.values(), key=len, reverse=True)
    several = (each for each in (*largest_first, sorted(level_of)) if len({level_of[place] for place in each}) > 1)
    return sorted(next(several), key=lambda place: (whole[place][pair[0]].number or 0, place))


def _first_change(order: Sequence[int], level_of: Mapping[int, int]) -> int:
    """Return the number of calls before the first one that is on another level than the one before it."""
    return next(n for n in range(1, len(order)) if level_of[order[n]] != level_of[order[n - 1]])


def _levels(differences: Sequence[int]) -> list[list[int]]:
    """Return the indices of a pair's differences by level, the fullest level first.

    The differences of a level are less than `MIN_STEP_NS` from the next one. Levels of few calls are left out.
    """
    order = sorted(range(len(differences)), key=differences.__getitem__)
    levels = [order[:1]]
    for before, after in pairwise(order):
        if differences[after] - differences[before] >= MIN_STEP_NS:
            levels.append([])
        levels[-1].append(after)
    return sorted((each for each in levels if len(each) >= MIN_LEVEL), key=lambda each: (-len(each), min(each)))


def _places_by_pair(whole: Sequence[CallsByRank], *, together: bool) -> dict[RankPair, list[int]]:
    """Return the places of the calls that two ranks can be compared by: of collectives, or else of messages."""
    places: dict[RankPair, list[int]] = defaultdict(list)
    for place, taken in enumerate(whole):
        kind = next(iter(taken.values())).kind
        if kind in (TOGETHER if together else MESSAGES):
            for pair in pairwise(sorted(taken)):
                places[pair].append(place)
    return places


def _differences(whole: Sequence[CallsByRank], pair: RankPair, places: Sequence[int]) -> list[int]:
    one, other = pair
    return [whole[place][other].end_ns - whole[place][one].end_ns for place in places]


def clock_offsets(records: Sequence[Record], whole: Sequence[CallsByRank]) -> tuple[int, ...]:
    """Return how far each clock is ahead of rank 0's. Raises RecordError if that cannot be determined."""
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
    """Return, from each rank to others, how far their clocks are ahead of its own, at their fullest level."""
    links: dict[int, dict[int, int]] = {rank: {} for rank in range(len(records))}
    for together in (True, False):
        for (one, other), places in _places_by_pair(whole, together=together).items():
            between = _differences(whole, (one, other), places)
            if together and (levels := _levels(between)):
                between = [between[index] for index in levels[0]]
            between_ns = round(float(np.median([float(each - between[0]) for each in between]))) + between[0]
            links[one].setdefault(other, between_ns)
            links[other].setdefault(one, -between_ns)
    return links
