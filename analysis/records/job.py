# SPDX-License-Identifier: Apache-2.0
"""Joins the records of a job's processes: their ranks, the calls that belong together, and a common clock."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.records.call import Call, Kind, Record, RecordError
from analysis.records.clock_alignment import (
    MESSAGES,
    TOGETHER,
    CallsByRank,
    ClockStep,
    clock_offsets,
    find_clock_steps,
    offsets_from_rank_0,
)
from analysis.records.fields import quote_value

MAX_LOST = 0.03
"""Largest share of calls that may be lost: a guess. The profile lacks their bytes, and more would hide or move phases.
"""
SHOWN = 8
UNMATCHED_HINT = "record all ranks from the same iteration on (docs/how-to/records.md)"
MAX_END_DISTANCE_NS = 10 * 10**9
"""Largest distance between the ends of one call on two hosts, ns, after clocks were compared; a larger one means a
wrong time. A guess, far above the drift of clocks within a record (0.1 s an hour) and above ranks' waits for each
other.
"""
UNIT_RATIO = 500
"""Least ratio of two durations of one call that shows another unit, since units of time differ by 1000. A guess."""
MAX_SHIFTS = 32
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
    ends. The duration is the shortest of the members', because that member waited least for others. `payload_bytes` and
    `sent_bytes` of an all-to-all are means of the members'; `is_tree` and `sent_bytes` are as in `Call`. `hosts` is the
    number of the members' hosts, None if it is unknown. `entered_ns` is the instant at which the first member began,
    and `waited_ns` the members' mean wait for the last one.
    """

    kind: Kind
    members: tuple[int, ...]
    payload_bytes: int
    begin_ns: int
    end_ns: int
    is_tree: bool = False
    sent_bytes: int | None = None
    hosts: int | None = None
    entered_ns: int = 0
    waited_ns: int = 0


@dataclass(frozen=True)
class Job:
    """A job's records by rank, its exchanges in the order of their begins, and the share of unmatched calls.

    `ahead_ns` is how far each rank's clock is ahead of that of rank 0; `steps_ns` are rank 0's. `exchanges` are those
    between hosts. `notes` are sentences on what else was found.
    """

    records: tuple[Record, ...]
    exchanges: tuple[Exchange, ...]
    lost_share: float
    ahead_ns: tuple[int, ...]
    notes: tuple[str, ...] = ()

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

    Raises RecordError if ranks are missing or occur twice, if records are of different jobs, if more than `MAX_LOST`
    of the calls is lost, if clocks cannot be compared, and if all calls are within hosts.
    """
    ranked = tuple(map(_without_copies, _order_by_rank(records)))
    members = _members(ranked)
    matched = _match_calls(ranked, members)
    whole = [(group, taken) for group, taken in matched if _is_complete(taken, members[group])]
    if not whole:
        raise RecordError(f"{_names(ranked)}: found no collective that all ranks of its group took part in")
    _lost_share(ranked, len(whole), len(matched), UNMATCHED_HINT)
    ahead_ns = clock_offsets(ranked, [taken for _, taken in whole])
    steps = find_clock_steps([taken for _, taken in whole])
    left_out = frozenset[int]().union(*(step.left_out for step in steps))
    steady = [each for place, each in enumerate(whole) if place not in left_out]
    together = [(group, taken) for group, taken in steady if _ends_together(taken, ahead_ns)]
    if not together:
        what = f"ends of each call that are more than {MAX_END_DISTANCE_NS // 10**9} s apart, as clocks compare"
        hint = "are the times of one file in another unit?" if any(map(_is_in_other_unit, steady)) else None
        raise RecordError(f"{_names(ranked)}: found {what}, expected less", hint)
    lost = _lost_share(ranked, len(together), len(matched) - len(left_out))
    joined = [_exchange(taken, members[group], ahead_ns, ranked) for group, taken in together]
    between_hosts = [each for each in _while_clocks_are_steady(joined, steps) if not _is_within_host(each)]
    if not between_hosts:
        raise RecordError(
            f"{_names(ranked)}: found calls within one host only, expected calls between hosts: no network carries them"
        )
    notes = (*_describe_steps(steps, ranked), *_describe_exchanges(joined), *_describe_splits(together))
    return Job(ranked, tuple(sorted(between_hosts, key=lambda each: each.begin_ns)), lost, ahead_ns, notes)


def _while_clocks_are_steady(exchanges: Sequence[Exchange], steps: Sequence[ClockStep]) -> list[Exchange]:
    """Return the exchanges of the time in which no clock was set."""
    kept = list(exchanges)
    for step in steps:
        common = [each for each in kept if each.kind in TOGETHER and set(step.pair) <= set(each.members)]
        begin_ns = min((each.begin_ns for each in common), default=0)
        end_ns = max((each.end_ns for each in common), default=0)
        kept = [each for each in kept if begin_ns <= each.begin_ns and each.end_ns <= end_ns]
    return kept


def _describe_steps(steps: Sequence[ClockStep], records: Sequence[Record]) -> Iterator[str]:
    for step in {step.rank: step for step in reversed(steps)}.values():
        record = records[step.rank]
        whose = f"{record.host} ({record.path.name})" if record.host else record.path.name
        yield (
            f"the clock of {whose} was set by {step.by_ns / 1e9:+.1f} s after {step.after} calls: the profile is of "
            f"the longer side, and {len(step.left_out)} calls of the other side are left out"
        )


def _describe_exchanges(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Yield sentences on exchanges within hosts."""
    within = [each for each in exchanges if _is_within_host(each)]
    if within:
        kinds = ", ".join(sorted({each.kind for each in within}))
        yield (
            f"{len(within)} of {len(exchanges)} exchanges are within one host ({kinds}) and count as computing, as no "
            "network carries them"
        )
    others = [each for each in exchanges if not _is_within_host(each)]
    if any(each.hosts is None for each in others):
        yield "hosts are not recorded: what ranks of one host send each other, if there are any, counts as sent"
    if any(each.hosts is not None and each.hosts < len(each.members) for each in others):
        yield "some groups have several ranks on a host: what these send each other within it counts as sent, too"


def _describe_splits(together: Sequence[tuple[Group, CallsByRank]]) -> Iterator[str]:
    """Yield sentences on the sizes of all-to-alls."""
    calls = [taken for _, taken in together if next(iter(taken.values())).kind == "all-to-all"]
    if any(call.sent_bytes is None for taken in calls for call in taken.values()):
        yield "all-to-alls without split sizes are taken for even: each rank sends each other one as much"
    sums: Counter[int] = Counter()
    for taken in calls:
        sums.update({rank: _own_bytes(call) for rank, call in taken.items()})
    if any(len({_own_bytes(call) for call in taken.values()}) > 1 for taken in calls):
        least, most = (size / 1e6 for size in (min(sums.values()), max(sums.values())))
        yield (
            f"all-to-alls are uneven: ranks send {least:.1f} to {most:.1f} MB in all of them, and the profile has the "
            "mean of each"
        )


def _own_bytes(call: Call) -> int:
    return call.payload_bytes if call.sent_bytes is None else call.sent_bytes


def _without_copies(record: Record) -> Record:
    """Return a record with each collective once: files put together from parts can hold some twice, to the same ns."""
    calls = tuple(
        dict.fromkeys((call, place if call.kind in MESSAGES else 0) for place, call in enumerate(record.calls))
    )
    if len(calls) == len(record.calls):
        return record
    note = f"{len(record.calls) - len(calls)} calls of {record.path.name} stand in it twice, and count once"
    return replace(record, calls=tuple(call for call, _ in calls), notes=(*record.notes, note))


def _lost_share(records: Sequence[Record], used: int, matched: int, hint: str | None = None) -> float:
    """Return the share of calls that is lost.

    Raises RecordError if it is more than `MAX_LOST`, with the hint of the record that lost most calls, or else `hint`.
    """
    shares = [each.lost / (each.lost + len(each.calls)) for each in records]
    lost = max(1 - used / matched, *shares)
    if lost > MAX_LOST:
        worst = records[shares.index(max(shares))]
        why = f" ({worst.path.name}: {'; '.join(worst.losses)})" if worst.losses else ""
        found = f"records that lack {100 * lost:.1f} % of the calls{why}"
        best_hint = worst.hint if max(shares) > MAX_LOST else hint
        raise RecordError(f"{_names(records)}: found {found}, expected {100 * MAX_LOST:.0f} % at most", best_hint)
    return lost


def _ends_together(taken: CallsByRank, ahead_ns: Sequence[int]) -> bool:
    ends_ns = [call.end_ns - ahead_ns[rank] for rank, call in taken.items()]
    return max(ends_ns) - min(ends_ns) <= MAX_END_DISTANCE_NS


def _is_in_other_unit(matched: tuple[Group, CallsByRank]) -> bool:
    """Return True if a call lasted `UNIT_RATIO` times as long for one of its ranks as for another, or longer."""
    lasted_ns = [call.end_ns - call.begin_ns for call in matched[1].values()]
    return max(lasted_ns) >= UNIT_RATIO * max(min(lasted_ns), 1)


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
            paths = ", ".join(str(records[rank].path) for rank in list(found.values())[:SHOWN])
            ranks = ", ".join(map(str, missing[:SHOWN]))
            what = f"group {quote_value(group[0])} of {sizes[group]} without the records of its rank {ranks}"
            raise RecordError(f"{paths}: found {what}, expected those of all its ranks", "add their files")
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
    for shift in range(min(len(others) - len(own), MAX_SHIFTS) + 1):
        ahead_ns = [call.end_ns - other.end_ns for call, other in zip(own, others[shift:], strict=False)]
        median_ns = ahead_ns[0] + round(float(np.median([float(each - ahead_ns[0]) for each in ahead_ns])))
        found.append((sum(abs(float(each - median_ns)) for each in ahead_ns), median_ns))
    return min(found)[1]


def _call_shape(call: Call) -> CallShape:
    if call.kind in MESSAGES:
        ends = (call.rank, call.peer) if call.kind == "send" else (call.peer, call.rank)
        return ("message", *ends, call.payload_bytes)
    if call.number is not None:
        return (call.kind, "numbered", call.number)
    return (call.kind, "sized", None if call.kind == "all-to-all" else call.payload_bytes)


def _is_complete(taken: CallsByRank, members: tuple[int, ...]) -> bool:
    """Return True if all members took part, with the same call. Ranks may send unlike amounts in an all-to-all."""
    call = next(iter(taken.values()))
    expected = 2 if call.kind in MESSAGES else len(members)
    is_alike = call.kind == "all-to-all" or len({each.payload_bytes for each in taken.values()}) == 1
    return len(taken) == expected and is_alike


def _exchange(
    taken: CallsByRank, members: tuple[int, ...], ahead_ns: Sequence[int], records: Sequence[Record]
) -> Exchange:
    call = taken[min(taken)]
    ends = sorted(each.end_ns - ahead_ns[rank] for rank, each in taken.items())
    end_ns = ends[len(ends) // 2] if len(ends) % 2 else (ends[len(ends) // 2 - 1] + ends[len(ends) // 2]) // 2
    durations_ns = [each.end_ns - each.begin_ns for each in taken.values()]
    lasted_ns = min(durations_ns)
    kind: Kind = "send" if call.kind == "receive" else call.kind
    order = tuple(_ordered_members(call, members))
    sent = [each.sent_bytes for each in taken.values() if each.sent_bytes is not None]
    return Exchange(
        kind=kind,
        members=order,
        payload_bytes=sum(each.payload_bytes for each in taken.values()) // len(taken),
        begin_ns=end_ns - lasted_ns,
        end_ns=end_ns,
        is_tree=call.is_tree,
        sent_bytes=sum(sent) // len(taken) if len(sent) == len(taken) else None,
        hosts=_count_hosts(call, [records[rank].host for rank in order]),
        entered_ns=min(each.begin_ns - ahead_ns[rank] for rank, each in taken.items()),
        waited_ns=sum(durations_ns) // len(durations_ns) - lasted_ns,
    )


def _count_hosts(call: Call, names: Sequence[str | None]) -> int | None:
    """Return the number of hosts of an exchange: as its group has it, or by the names of its ranks' hosts.

    A message is between two ranks of a group, so that the group's number is of use only where it leaves no choice.
    """
    if call.hosts is not None and (call.kind not in MESSAGES or call.hosts in (1, call.ranks)):
        return min(call.hosts, len(names))
    return None if None in names else len(set(names))


def _is_within_host(exchange: Exchange) -> bool:
    return exchange.hosts == 1 and len(exchange.members) > 1


def _ordered_members(call: Call, members: tuple[int, ...]) -> Iterator[int]:
    """Yield the members in the order of `Exchange`. The group's first is the root if a call does not name it."""
    root = call.peer or 0
    if call.kind in MESSAGES:
        assert call.peer is not None
        ends = (call.rank, call.peer) if call.kind == "send" else (call.peer, call.rank)
        yield from (members[each] for each in ends)
    elif call.kind == "broadcast":
        yield from members[root:] + members[:root]
    elif call.kind == "reduce":
        yield from members[root + 1 :] + members[: root + 1]
    else:
        yield from members
