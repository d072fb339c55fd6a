# SPDX-License-Identifier: Apache-2.0
"""Communication patterns: the transfers between workers in a phase, and their dependencies.

A pattern is a function that maps a phase's bytes and a group of workers (their ranks, in order) to transfers.
docs/reference/patterns.md defines `bytes` for each pattern. All models, planners and trainers use the patterns of this
module.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

Ranks = Sequence[int]


class Transfer(NamedTuple):
    """Payload bytes from one worker to another in one phase. Workers are ranks.

    `lead_bytes` bounds the bytes sent minus the bytes that each of the `feeders` has sent the sender, in the same phase
    and channel. Without feeders there is no bound. Transfers of different channels have flows of their own. The workers
    of an all-reduce leave the phase together.
    """

    sender: int
    receiver: int
    bytes: int
    lead_bytes: int | None = None
    feeders: tuple[int, ...] = ()
    channel: int = 0
    all_reduce: bool = False


def flow_bytes(whole: int, flows: int, number: int) -> int:
    """Return the bytes of one of a transfer's flows, over which its bytes are spread evenly."""
    return whole // flows + (number < whole % flows)


def find_feeders(transfers: Sequence[Transfer]) -> list[tuple[int, ...]]:
    """Return, for each transfer of a phase, the indices of the transfers that feed it."""
    places = {(each.sender, each.receiver, each.channel): place for place, each in enumerate(transfers)}
    return [tuple(places[feeder, each.sender, each.channel] for feeder in each.feeders) for each in transfers]


def ring(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield the transfers of a ring all-reduce in 2(N-1) steps.

    Each worker sends `size` bytes to the next, and the last to the first. A worker sends at most one step ahead.
    """
    steps = 2 * (len(group) - 1)
    for place, sender in enumerate(group):
        receiver, feeder = group[(place + 1) % len(group)], group[place - 1]
        yield Transfer(sender, receiver, size, -(-size // steps), (feeder,), all_reduce=True)


def tree(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield the transfers of NCCL's tree all-reduce of `size` bytes, in which each of two trees carries half of them.

    Each tree sums its bytes up to its root and sends the sum back down. A worker forwards bytes as they arrive. Each
    tree is a channel.
    """
    for channel, parents in enumerate(double_binary_tree(len(group))):
        half = flow_bytes(size, 2, channel)
        children: dict[int, list[int]] = {}
        for child, parent in parents.items():
            children.setdefault(parent, []).append(child)
        for child, parent in parents.items() if half else ():
            below = tuple(group[each] for each in children.get(child, ()))
            yield Transfer(group[child], group[parent], half, 0 if below else None, below, channel, all_reduce=True)
            # The root sends down what all its children have brought. Other workers send down what their parent has.
            above = [parents[parent]] if parent in parents else children[parent]
            feeders = tuple(group[each] for each in above)
            yield Transfer(group[parent], group[child], half, 0, feeders, channel, all_reduce=True)


def double_binary_tree(count: int) -> tuple[dict[int, int], dict[int, int]]:
    """Return the parents in two trees of `count` nodes, as NCCL builds them (src/graph/trees.cc, ncclGetDtree).

    The odd nodes of the first tree are its leaves. The second tree is its mirror image if `count` is even, else the
    first one shifted by one node. No node has children in both trees, except node 0 of an odd count, which has one in
    each. Two such trees use both directions of all links (Sanders, Speck and Traeff, Parallel Computing 35, 2009).
    """
    first = {node: _parent(node, count) for node in range(1, count)}
    moved = [count - 1 - node if count % 2 == 0 else (node + 1) % count for node in range(count)]
    return first, {moved[node]: moved[parent] for node, parent in first.items()}


def _parent(node: int, count: int) -> int:
    """Return the parent in a binary tree that has node 0 as its root, and nodes in order from left to right."""
    lowest_bit = node & -node
    parent = (node ^ lowest_bit) | lowest_bit << 1
    return parent if parent < count else node ^ lowest_bit


def pairs(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield exchanges of `size` bytes in each direction between workers 1 and 2, 3 and 4, and so on."""
    for one, other in zip(group[::2], group[1::2], strict=True):
        yield Transfer(one, other, size)
        yield Transfer(other, one, size)


def all_to_all(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers in which each worker sends `size` bytes in total, divided evenly among the others.

    If the division leaves a remainder, the workers next in the group get one byte more.
    """
    others = len(group) - 1
    for place, sender in enumerate(group):
        for distance in range(1, len(group)):
            part = size // others + (distance <= size % others)
            if part:
                yield Transfer(sender, group[(place + distance) % len(group)], part)


def one_to_all(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers of `size` bytes from the first worker to each other one, like a broadcast."""
    yield from (Transfer(group[0], receiver, size) for receiver in group[1:])


def all_to_one(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers of `size` bytes from each other worker to the first, as to a parameter server."""
    yield from (Transfer(sender, group[0], size) for sender in group[1:])


def pipeline(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers of `size` bytes from each worker to the next, except from the last.

    Workers after the first forward received bytes, so they cannot send ahead of them.
    """
    for place, (sender, receiver) in enumerate(pairwise(group)):
        yield Transfer(sender, receiver, size, 0 if place else None, (group[place - 1],) if place else ())


Pattern = Literal["ring", "tree", "pairs", "all-to-all", "one-to-all", "all-to-one", "pipeline"]
# Symmetric patterns, in which all workers send equally much.
ALIKE: tuple[Pattern, ...] = ("ring", "pairs", "all-to-all")
PATTERNS: dict[Pattern, Callable[[int, Ranks], Iterator[Transfer]]] = {
    "ring": ring,
    "tree": tree,
    "pairs": pairs,
    "all-to-all": all_to_all,
    "one-to-all": one_to_all,
    "all-to-one": all_to_one,
    "pipeline": pipeline,
}


@lru_cache(maxsize=1024)
def all_transfers(pattern: Pattern, size: int, groups: tuple[tuple[int, ...], ...]) -> tuple[Transfer, ...]:
    """Return all transfers of a phase of `size` bytes, group by group.

    Each group must have at least two workers, and an even number of workers for `pairs`.
    """
    return tuple(transfer for group in groups for transfer in PATTERNS[pattern](size, group))


def describe_transfers(pattern: Pattern, transfers: Sequence[Transfer]) -> list[list[Any]]:
    """Return the transfers of a phase as trainers/PROTOCOL.md describes them. Only trees need channels and feeders."""
    if pattern != "tree":
        return [[part for part in each[:4] if part is not None] for each in transfers]
    return [[*each[:3], each.lead_bytes or 0, each.channel, list(each.feeders)] for each in transfers]
