# SPDX-License-Identifier: Apache-2.0
"""Rounds of measurements that do not disturb each other."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def disjoint_rounds(items: Iterable[Item], resources: Callable[[Item], Collection[Hashable]]) -> list[list[Item]]:
    """Return the items in rounds. No two items of a round use the same resource."""
    rounds: list[tuple[list[Item], set[Hashable]]] = []
    for item in items:
        own = set(resources(item))
        place = next((each for each in rounds if each[1].isdisjoint(own)), None)
        if place is None:
            place = ([], set())
            rounds.append(place)
        place[0].append(item)
        place[1].update(own)
    return [found for found, _ in rounds]
