# SPDX-License-Identifier: Apache-2.0
"""Communication patterns: the transfers between workers in a phase, and their dependencies.

A pattern is a function that maps a phase's bytes and a group of workers (their ranks, in order) to transfers.
docs/reference/patterns.md defines `bytes` for each pattern. All models, planners and trainers use the patterns of this
module.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

Ranks = Sequence[int]


class Transfer(NamedTuple):
    """Payload bytes from one worker to another in one phase. Workers are ranks.

    `lead_bytes` bounds the bytes sent minus the bytes that the sender has received in the phase. None means no bound.
    """

    sender: int
    receiver: int
    bytes: int
    lead_bytes: int | None = None


def flow_bytes(whole: int, flows: int, number: int) -> int:
    """Return the bytes of one of a transfer's flows, over which its bytes are spread evenly."""
    return whole // flows + (number < whole % flows)


def ring(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield the transfers of a ring all-reduce in 2(N-1) steps.

    Each worker sends `size` bytes to the next, and the last to the first. A worker sends at most one step ahead.
    """
    steps = 2 * (len(group) - 1)
    for place, sender in enumerate(group):
        yield Transfer(sender, group[(place + 1) % len(group)], size, -(-size // steps))


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
        yield Transfer(sender, receiver, size, 0 if place else None)


Pattern = Literal["ring", "pairs", "all-to-all", "one-to-all", "all-to-one", "pipeline"]
# Symmetric patterns, in which all workers send equally much.
ALIKE: tuple[Pattern, ...] = ("ring", "pairs", "all-to-all")
PATTERNS: dict[Pattern, Callable[[int, Ranks], Iterator[Transfer]]] = {
    "ring": ring,
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
