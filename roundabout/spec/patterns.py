# SPDX-License-Identifier: Apache-2.0
"""Communication patterns: the transfers between workers in a phase, and their dependencies.

A pattern is a function from a phase's bytes and a group of workers (their ranks, in the order that counts) to its
transfers. docs/reference/patterns.md says what `bytes` means for each. A pattern that is added here is available to all
models, planners and trainers.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

Ranks = Sequence[int]


class Transfer(NamedTuple):
    """Payload from one worker to another in one phase, at the scale of the bytes that it was made of.

    `lead_bytes` bounds how far sending may be ahead of what the sender has received in the phase; None: no bound.
    """

    sender: int
    receiver: int
    bytes: int
    lead_bytes: int | None = None


def ring(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield an all-reduce in 2(N-1) steps.

    Each sends `size` to the next, the last to the first, at most one step ahead.
    """
    steps = 2 * (len(group) - 1)
    for place, sender in enumerate(group):
        yield Transfer(sender, group[(place + 1) % len(group)], size, -(-size // steps))


def pairs(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield exchanges of `size` between the first and second, the third and fourth, and so on."""
    for one, other in zip(group[::2], group[1::2], strict=True):
        yield Transfer(one, other, size)
        yield Transfer(other, one, size)


def all_to_all(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers of `size` by each worker in all, an even part to each other.

    The next ones in the group get the remainder.
    """
    others = len(group) - 1
    for place, sender in enumerate(group):
        for distance in range(1, len(group)):
            part = size // others + (distance <= size % others)
            if part:
                yield Transfer(sender, group[(place + distance) % len(group)], part)


def one_to_all(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers of `size` by the first to each other: a broadcast, or a parameter server's answer."""
    yield from (Transfer(group[0], receiver, size) for receiver in group[1:])


def all_to_one(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers of `size` by each other to the first, as to a parameter server."""
    yield from (Transfer(sender, group[0], size) for sender in group[1:])


def pipeline(size: int, group: Ranks) -> Iterator[Transfer]:
    """Yield transfers of `size` by each but the last to the next. All but the first pass on what they have received."""
    for place, (sender, receiver) in enumerate(pairwise(group)):
        yield Transfer(sender, receiver, size, 0 if place else None)


Pattern = Literal["ring", "pairs", "all-to-all", "one-to-all", "all-to-one", "pipeline"]
# Those in which every worker sends as much as any other.
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
    """Return all transfers of a phase of `size` bytes, group after group.

    Groups have at least two workers, even for pairs.
    """
    return tuple(transfer for group in groups for transfer in PATTERNS[pattern](size, group))
