# SPDX-License-Identifier: Apache-2.0
"""Weighted max-min shares of links, by strict priority."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundabout.spec.topology import Direction


@dataclass(frozen=True)
class Flow:
    """Traffic at an instant: its path, its demand (bytes/ms, inf if unlimited), its weight and its priority.

    `passes_on` is the index of an earlier flow of equal weight and priority, whose rate limits this flow's.
    """

    path: tuple[Direction, ...]
    demand: float
    weight: float = 1.0
    passes_on: int | None = None
    priority: int = 0


def max_min_rates(flows: Sequence[Flow], capacity: Mapping[Direction, float]) -> list[float]:
    """Return the weighted max-min fair rate of each flow, bytes/ms; `capacity` is in bytes/ms.

    Flows of higher priority are served first on every link of their path.
    """
    rates = [0.0] * len(flows)
    left = dict(capacity)
    for priority in sorted({flow.priority for flow in flows}, reverse=True):
        _fill(flows, rates, left, {i for i, flow in enumerate(flows) if flow.priority == priority})
    return rates


def _fill(flows: Sequence[Flow], rates: list[float], left: dict[Direction, float], active: set[int]) -> None:
    """Fill progressively by the flows at the places `active`, and reduce the capacity `left`."""
    while active:
        weights: dict[Direction, float] = {}
        for i in active:
            for edge in flows[i].path:
                weights[edge] = weights.get(edge, 0.0) + flows[i].weight
        levels = {edge: max(left[edge], 0.0) / weight for edge, weight in weights.items()}
        level = min((*levels.values(), *(flows[i].demand / flows[i].weight for i in active)))
        full = {edge for edge, reached in levels.items() if reached <= level * (1 + 1e-12)}
        for i in sorted(active):
            first = flows[i].passes_on
            wanted = flows[i].demand if first is None or first in active else min(flows[i].demand, rates[first])
            satisfied = wanted <= level * flows[i].weight * (1 + 1e-12)
            if satisfied or not full.isdisjoint(flows[i].path):
                rates[i] = wanted if satisfied else level * flows[i].weight
                active.remove(i)
                for edge in flows[i].path:
                    left[edge] -= rates[i]
