# SPDX-License-Identifier: Apache-2.0
"""Least squares of log t = log A + B (C - BW)^-n: closed form in A and B, around it a search over the shape (n, C).

The search tries whole grids and narrows them. So it finds the best shape and all shapes that are nearly as good, from
which intervals follow. For each C it narrows n anew, because n and C trade off along a thin valley.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.statistics.intervals import Array

EXPONENT_RANGE = (0.05, 8.0)
"""Range in which n is searched. Towards 0 the model becomes a power of C - BW; at 8 it rises only right before C."""
GAP_RANGE = (1e-3, 3.0)
"""Range in which C is searched: its distance above the highest load, as multiples of that load."""
POINTS = 64
ROUNDS = 4
"""Number of rounds; each narrows a range to a few of `POINTS` cells, and four resolve about a millionth of it."""


@dataclass(frozen=True)
class Ranges:
    """The searched ranges of n and of C's distance from the highest load; equal ends fix the coefficient."""

    n: tuple[float, float]
    gap_gbps: tuple[float, float]
    top_gbps: float

    @property
    def n_free(self) -> bool:
        """Return True if n is searched."""
        return self.n[0] < self.n[1]

    @property
    def capacity_free(self) -> bool:
        """Return True if C is searched."""
        return self.gap_gbps[0] < self.gap_gbps[1]

    def reach_power_law(self, shapes: "Shapes") -> bool:
        """Return True if any of these shapes lies at the end of the search towards n = 0 or an infinite C.

        Both limits are other models (a power of C - BW, an exponential of BW), in which A goes to 0 and B to infinity.
        """
        return (self.n_free and _touches(shapes.n.min(), self.n[0])) or (
            self.capacity_free and _touches(shapes.gap_gbps.max(), self.gap_gbps[1])
        )

    def reach_infinite_n(self, shapes: "Shapes") -> bool:
        """Return True if any of these shapes lies at the end of the search towards infinite n, with an infinite B."""
        return self.n_free and _touches(shapes.n.max(), self.n[1])


@dataclass(frozen=True, eq=False)
class Shapes:
    """The fits of A and B for many shapes. Arrays are indexed by C and n, and are flat after `select`."""

    n: Array
    gap_gbps: Array
    b: Array
    mean_log_t: Array
    mean_x: Array
    """Mean of x = (C - BW)^-n over the levels."""
    spread_x: Array
    """Sum of the squared deviations of x from its mean."""
    mean_variance: Array
    """Variance of the mean of log t, as a multiple of the residual variance: 1 / number of levels."""
    error: Array
    """Sum of the squared residuals of log t."""

    def log_t(self, x: Array | float) -> Array:
        """Return the fitted log t at (C - BW)^-n = `x`; at 0 it is log A."""
        return self.mean_log_t + self.b * (x - self.mean_x)

    def variance(self, x: Array | float) -> Array:
        """Return the variance of `log_t(x)`, as a multiple of the residual variance."""
        return self.mean_variance + (x - self.mean_x) ** 2 / self.spread_x

    def select(self, which: Any) -> "Shapes":
        """Return the shapes selected by a boolean array, or the shape at an index."""
        return Shapes(**{name: values[which] for name, values in vars(self).items()})

    @property
    def best(self) -> "Shapes":
        """Return the shape with the least error."""
        return self.select(np.unravel_index(self.error.argmin(), self.error.shape))


def search_shapes(loads_gbps: Array, log_t: Array, ranges: Ranges, allowance: float = 0.0) -> Shapes:
    """Return the best shape and all tried shapes whose error exceeds the least one by at most `allowance`.

    `loads_gbps` and `log_t` have shape (levels,).
    """
    gaps = _grid(ranges.gap_gbps)
    for _ in range(ROUNDS if len(gaps) > 1 else 1):
        shapes = _search_n(ranges.top_gbps - loads_gbps, log_t, ranges.n, gaps, allowance)
        error = shapes.error.min(axis=1)
        gaps = _narrow(gaps[None], error[None] <= error.min() + allowance)[0]
    return shapes


def _search_n(below_top_gbps: Array, log_t: Array, ends: tuple[float, float], gaps: Array, allowance: float) -> Shapes:
    n = np.tile(_grid(ends), (len(gaps), 1))
    for _ in range(ROUNDS if n.shape[1] > 1 else 1):
        shapes = _solve(below_top_gbps, log_t, n, np.broadcast_to(gaps[:, None], n.shape))
        good = np.maximum(shapes.error.min() + allowance, shapes.error.min(axis=1, keepdims=True))
        n = _narrow(n, shapes.error <= good)
    return shapes


def _solve(below_top_gbps: Array, log_t: Array, n: Array, gaps: Array) -> Shapes:
    x = (gaps + below_top_gbps[:, None, None]) ** -n
    dx = x - x.mean(axis=0)
    dy = (log_t - log_t.mean())[:, None, None]
    spread = (dx**2).sum(axis=0)
    b = (dx * dy).sum(axis=0) / spread
    error = ((dy - b * dx) ** 2).sum(axis=0)
    everywhere = np.ones_like(b)
    means = log_t.mean() * everywhere, x.mean(axis=0)
    return Shapes(n, gaps, b, *means, spread, everywhere / len(log_t), error)


def _touches(value: float, end: float) -> bool:
    return math.isclose(value, end, rel_tol=1e-9)


def _grid(ends: tuple[float, float]) -> Array:
    return np.geomspace(*ends, POINTS if ends[0] < ends[1] else 1)


def _narrow(grid: Array, good: Array) -> Array:
    """Return each row spread anew over its good cells and one more at either end."""
    last = grid.shape[1] - 1
    low = np.maximum(good.argmax(axis=1) - 1, 0)
    high = np.minimum(last - good[:, ::-1].argmax(axis=1) + 1, last)
    rows = np.arange(len(grid))
    ends = grid[rows, low, None], grid[rows, high, None]
    return np.asarray(ends[0] * (ends[1] / ends[0]) ** np.linspace(0, 1, last + 1))
