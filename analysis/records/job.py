# SPDX-License-Identifier: Apache-2.0
"""Joins the records of a job's processes: their ranks, the calls that belong together, and a common clock."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.records.call import Call, Kind, Record, RecordError
from analysis.records.clock_alignment import CallsByRank, clock_offsets, offsets_from_rank_0
from analysis.records.fields import quote_value

MOST_LOST = 0.03
"""Largest share of calls that may be lost: a guess. The profile lacks their bytes, and more would hide or move phases.
"""
SHOWN = 8
MOST_END_DISTANCE_NS = 10 * 10**9
"""Largest distance between the ends of one call on two hosts, ns, after clocks were compared; a larger one means a
wrong time. A guess, far above the drift of clocks within a record (0.1 s an hour) and above ranks' waits for each
other.
"""
MOST_SHIFTS = 32
"""Largest number of calls that a rank may lack at its begin, if calls are paired by the times of their ends."""

Group = tuple[str, tuple[int, ...] | None]
"""A communicator's name in a record, with its ranks if the record has them, because some tools reuse names."""
CallShape = tuple[str | int | None, ...]
"""The fields that identify a call among those of its group."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective, or a message, as all its participants record it.

    `members` are the job's ranks in the order of the group: sender and receiver of a message, a broadcast's ranks from
    the root on, a reduce's ranks up to the root. Instants are on rank 0's clock. The end is the median of the members'
    ends. The duration is the shortest of the members', because that member waited least for others. `is_tree` as in
    `Call`.
    """

    kind: Kind
    members: tuple[int, ...]
    payload_bytes: int
    begin_ns: int
    end_ns: int
    is_tree: bool = False


@dataclass(frozen=True)
class Job:
    """A job's records by rank, its exchanges in the order of their begins, and the share of unmatched calls.

    `ahead_ns` is how far each rank's clock is ahead of that of rank 0; `steps_ns` are rank 0's.
    """

    records: tuple[Record, ...]
    exchanges: tuple[Exchange, ...]
    lost_share: float
    ahead_ns: tuple[int, ...]

    @property
    def file_names(self) -> str:
        """Return the names of the job's files, for a message."""
        return _names(self.records)

    @property
    def steps_ns(self) -> tuple[tuple[int, int], ...]:
        """Return the begins and ends of iterations, if the records name iterations, on rank 0's clock."""
        return self.records[0].steps_ns


def join_records(records: Sequence[Record]) -> Job:
    """Join the records of one job.

    Raises RecordError if ranks are missing or occur twice, if records are of different jobs, if more than `MOST_LOST`
    of the calls is lost, and if clocks cannot be compared.
    """
    ranked = tuple(map(_without_copies, _order_by_rank(records)))
    members = _members(ranked)
    matched = _match_calls(ranked, members)
    whole = [(group, taken) for group, taken in matched if _is_complete(taken, members[group])]
    if not whole:
        raise RecordError(f"{_names(ranked)}: found no collective that all ranks of its group took part in")
    _lost_share(ranked, len(whole), len(matched))
    ahead_ns = clock_offsets(ranked, [taken for _, taken in whole])
    together = [(group, taken) for group, taken in whole if _ends_together(taken, ahead_ns)]
    if not together:
        what = f"ends of each call that are more than {MOST_END_DISTANCE_NS // 10**9} s apart, as clocks compare"
        raise RecordError(
            f"{_names(ranked)}: found {what}, expected less", "are the times of one file in another unit?"
        )
    lost = _lost_share(ranked, len(together), len(matched))
    exchanges = (_exchange(taken, members[group], ahead_ns) for group, taken in together)
    return Job(ranked, tuple(sorted(exchanges, key=lambda each: each.begin_ns)), lost, ahead_ns)


def _without_copies(record: Record) -> Record:
    """Return a record with each collective once: files put together from parts can hold some twice, to the same ns."""
    calls = tuple(
        dict.fromkeys(
            (call, place if call.kind in ("send", "receive") else 0) for place, call in enumerate(record.calls)
        )
    )
    if len(calls) == len(record.calls):
        return record
    note = f"{len(record.calls) - len(calls)} calls of {record.path.name} stand in it twice, and count once"
    return replace(record, calls=tuple(call for call, _ in calls), notes=(*record.notes, note))


def _lost_share(records: Sequence[Record], used: int, matched: int) -> float:
    """Return the share of calls that is lost. Raises RecordError if it is more than `MOST_LOST`."""
    shares = [each.lost / (each.lost + len(each.calls)) for each in records]
    lost = max(1 - used / matched, *shares)
    if lost > MOST_LOST:
        worst = records[shares.index(max(shares))]
        why = f" ({worst.path.name}: {'; '.join(worst.losses)})" if worst.losses else ""
        found = f"records that lack {100 * lost:.1f} % of the calls{why}"
        hint = "record again: larger buffers, dumped more often; all ranks from the same iteration on (records.md)"
        raise RecordError(f"{_names(records)}: found {found}, expected {100 * MOST_LOST:.0f} % at most", hint)
    return lost


def _ends_together(taken: CallsByRank, ahead_ns: Sequence[int]) -> bool:
    ends_ns = [call.end_ns - ahead_ns[rank] for rank, call in taken.items()]
    return max(ends_ns) - min(ends_ns) <= MOST_END_DISTANCE_NS


def _names(records: Sequence[Record]) -> str:
    names = [str(each.path) for each in records]
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _order_by_rank(records: Sequence[Record]) -> tuple[Record, ...]:
    """Return the records by the job's ranks.

    If records lack these, by ranks in a group of all, or in the given order.
    """
    if all(each.rank is None for each in records):
        return tuple(sorted(records, key=lambda each: _rank_among_all(each, len(records))))
    known: dict[int, Record] = {}
    for each in records:
        if each.rank is None or each.world != records[0].world:
            found = f"rank {each.rank} of {each.world}" if each.rank is not None else "no rank"
            raise RecordError(f"{each.path}: found {found}, expected one of {records[0].world}, as {records[0].path}")
        if each.rank in known:
            raise RecordError(f"{each.path}: found rank {each.rank}, which {known[each.rank].path} is, too")
        known[each.rank] = each
    world = records[0].world or len(known)
    if missing := [rank for rank in range(world) if rank not in known]:
        ranks = ", ".join(map(str, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
        raise RecordError(
            f"{_names(records)}: found no record of rank {ranks}, expected all {world}", "add their files"
        )
    return tuple(known[rank] for rank in sorted(known))


def _rank_among_all(record: Record, world: int) -> int:
    return next((call.rank for call in record.calls if call.ranks == world), 0)


def _group(record: Record, call: Call) -> Group:
    return call.group, record.members.get(call.group)


def _members(records: Sequence[Record]) -> dict[Group, tuple[int, ...]]:
    """Return the job's ranks of each group, in its order."""
    places: dict[Group, dict[int, int]] = defaultdict(dict)
    sizes: dict[Group, int] = {}
    for rank, record in enumerate(records):
        for call in record.calls:
            group = _group(record, call)
            sizes[group] = call.ranks
            other = places[group].setdefault(call.rank, rank)
            if other != rank:
                what = f"rank {call.rank} of group {quote_value(call.group)} in both"
                files = f"{record.path} and {records[other].path}"
                raise RecordError(f"{files}: found {what}, expected each once", "one file a process, of one job")
    for group, found in places.items():
        if missing := sorted(set(range(sizes[group])) - set(found)):
            who = ", ".join(str(records[rank].path) for rank in list(found.values())[:SHOWN])
            ranks = ", ".join(map(str, missing[:SHOWN]))
            what = f"group {quote_value(group[0])} of {sizes[group]} without the records of its rank {ranks}"
            raise RecordError(f"{who}: found {what}, expected those of all its ranks", "add their files")
    return {group: tuple(found[rank] for rank in range(sizes[group])) for group, found in places.items()}


def _match_calls(
    records: Sequence[Record], members: Mapping[Group, tuple[int, ...]]
) -> list[tuple[Group, CallsByRank]]:
    """Return the groups and calls of all exchanges, each call by its rank.

    Calls are matched by number, or else by their order among calls of one size. Messages are matched by sender and
    receiver, since numbers count each process's own. If a rank lacks some, calls are matched by when they end.
    """
    alike: dict[tuple[Group, CallShape], dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    for rank, record in enumerate(records):
        for call in record.calls:
            alike[_group(record, call), _call_shape(call)][rank].append(call)
    matched: list[tuple[Group, CallsByRank]] = []
    uneven: list[tuple[Group, dict[int, list[Call]]]] = []
    for (group, _), calls in alike.items():
        if len({len(own) for own in calls.values()}) == 1:
            matched += [(group, dict(zip(calls, each, strict=True))) for each in zip(*calls.values(), strict=True)]
        else:
            uneven.append((group, calls))
    ahead_ns = offsets_from_rank_0(records, [taken for group, taken in matched if _is_complete(taken, members[group])])
    return matched + [(group, taken) for group, calls in uneven for taken in _pair_by_end(calls, ahead_ns)]


def _pair_by_end(calls: dict[int, list[Call]], ahead_ns: Mapping[int, int]) -> list[CallsByRank]:
    """Pair calls that look the same by when they end, each with one of the rank that has most."""
    most = max(calls, key=lambda rank: len(calls[rank]))
    paired: list[CallsByRank] = [{most: call} for call in calls.pop(most)]
    others = [each[most] for each in paired]
    for rank, own in calls.items():
        known = most in ahead_ns and rank in ahead_ns
        apart_ns = ahead_ns[rank] - ahead_ns[most] if known else _offset_between_ns(own, others)
        for place, call in zip(_nearest_ends(own, others, apart_ns), own, strict=True):
            if rank in paired[place]:
                paired.append({rank: call})
            else:
                paired[place][rank] = call
    return paired


def _nearest_ends(own: Sequence[Call], others: Sequence[Call], apart_ns: int) -> list[int]:
    """Return, for each call, the place of the other rank's call that ends nearest."""
    first_ns = others[0].end_ns
    others_ns = np.array([call.end_ns - first_ns for call in others], np.float64)
    own_ns = np.array([call.end_ns - apart_ns - first_ns for call in own], np.float64)
    places: list[int] = np.searchsorted((others_ns[:-1] + others_ns[1:]) / 2, own_ns).tolist()
    return places


def _offset_between_ns(own: Sequence[Call], others: Sequence[Call]) -> int:
    """Return how far a clock is ahead of another: the ends are least apart so, if calls lack at the beginning only."""
    found: list[tuple[float, int]] = []
    for shift in range(min(len(others) - len(own), MOST_SHIFTS) + 1):
        ahead_ns = [call.end_ns - other.end_ns for call, other in zip(own, others[shift:], strict=False)]
        median_ns = ahead_ns[0] + round(float(np.median([float(each - ahead_ns[0]) for each in ahead_ns])))
        found.append((sum(abs(float(each - median_ns)) for each in ahead_ns), median_ns))
    return min(found)[1]


def _call_shape(call: Call) -> CallShape:
    if call.kind in ("send", "receive"):
        ends = (call.rank, call.peer) if call.kind == "send" else (call.peer, call.rank)
        return ("message", *ends, call.payload_bytes)
    return (call.kind, "sized", call.payload_bytes) if call.number is None else (call.kind, "numbered", call.number)


def _is_complete(taken: CallsByRank, members: tuple[int, ...]) -> bool:
    """Return True if all members took part, with the same call."""
    call = next(iter(taken.values()))
    expected = 2 if call.kind in ("send", "receive") else len(members)
    return len(taken) == expected and len({each.payload_bytes for each in taken.values()}) == 1


def _exchange(taken: CallsByRank, members: tuple[int, ...], ahead_ns: Sequence[int]) -> Exchange:
    call = taken[min(taken)]
    ends = sorted(each.end_ns - ahead_ns[rank] for rank, each in taken.items())
    end_ns = ends[len(ends) // 2] if len(ends) % 2 else (ends[len(ends) // 2 - 1] + ends[len(ends) // 2]) // 2
    lasted_ns = min(each.end_ns - each.begin_ns for each in taken.values())
    kind: Kind = "send" if call.kind == "receive" else call.kind
    order = tuple(_ordered_members(call, members))
    return Exchange(kind, order, call.payload_bytes, end_ns - lasted_ns, end_ns, call.is_tree)


def _ordered_members(call: Call, members: tuple[int, ...]) -> Iterator[int]:
    """Yield the members in the order of `Exchange`. The group's first is the root if a call does not name it."""
    root = call.peer or 0
    if call.kind in ("send", "receive"):
        assert call.peer is not None
        ends = (call.rank, call.peer) if call.kind == "send" else (call.peer, call.rank)
        yield from (members[each] for each in ends)
    elif call.kind == "broadcast":
        yield from members[root:] + members[:root]
    elif call.kind == "reduce":
        yield from members[root + 1 :] + members[: root + 1]
    else:
        yield from members
