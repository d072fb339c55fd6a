# SPDX-License-Identifier: Apache-2.0
"""Weighted max-min shares of links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Direction = tuple[str, str]
"""One direction of a link: (from, to)."""


@dataclass(frozen=True)
class Flow:
    """Traffic at an instant: its path, what it wants (bytes/ms; inf: all there is), its connections.

    `passes_on` is the place of an earlier flow of the same weight, beyond whose rate it has nothing to send.
    """

    path: tuple[Direction, ...]
    wanted: float
    weight: float = 1.0
    passes_on: int | None = None


def max_min_rates(flows: Sequence[Flow], capacity: Mapping[Direction, float]) -> list[float]:
    """Weighted max-min fair rates (bytes/ms) by progressive filling; `capacity` in bytes/ms per direction of a link."""
    rates = [0.0] * len(flows)
    left = dict(capacity)
    active = set(range(len(flows)))
    while active:
        weights: dict[Direction, float] = {}
        for i in active:
            for edge in flows[i].path:
                weights[edge] = weights.get(edge, 0.0) + flows[i].weight
        levels = {edge: max(left[edge], 0.0) / weight for edge, weight in weights.items()}
        level = min((*levels.values(), *(flows[i].wanted / flows[i].weight for i in active)))
        full = {edge for edge, reached in levels.items() if reached <= level * (1 + 1e-12)}
        for i in sorted(active):
            first = flows[i].passes_on
            wanted = flows[i].wanted if first is None or first in active else min(flows[i].wanted, rates[first])
            satisfied = wanted <= level * flows[i].weight * (1 + 1e-12)
            if satisfied or not full.isdisjoint(flows[i].path):
                rates[i] = wanted if satisfied else level * flows[i].weight
                active.remove(i)
                for edge in flows[i].path:
                    left[edge] -= rates[i]
    return rates
