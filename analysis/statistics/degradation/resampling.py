# SPDX-License-Identifier: Apache-2.0
"""The choices and fits of redrawn sweeps, whose levels vary as their repetitions allow.

A fit's own intervals treat n and C's being fixed as given, though both were chosen by the same levels. So levels are
drawn anew. For each draw every candidate predicts levels left out, and the best candidate is fitted. A candidate fits
A, B and at most one more coefficient, by least squares over a grid of that coefficient for all draws at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.degradation.shapes import Ranges
from analysis.statistics.degradation.sweep import Sweep
from analysis.statistics.intervals import Array, percentiles95

GRID = 160
"""Number of values of n, and of C, that are tried; neighbors are 3 and 5 % apart."""


@dataclass(frozen=True, eq=False)
class RedrawnFits:
    """The chosen fits of redrawn sweeps, as arrays of shape (draws,), and the misses of all candidates.

    `misses` has shape (draws, candidates), and holds mean squared errors of log t.
    """

    log_a: Array
    b: Array
    n: Array
    capacity_gbps: Array
    misses: Array

    def intervals_of_log_t(self, loads_gbps: Array) -> Array:
        """Return the intervals of the curve's log t at each load, infinite beyond a fitted C; shape (loads, 2)."""
        return np.array([percentiles95(self._log_t(load)) for load in loads_gbps])

    def best_of(self, places: Sequence[int]) -> NDArray[np.intp]:
        """Return for each draw the index of the candidate, among those at `places`, that predicts best."""
        best: NDArray[np.intp] = self.misses[:, places].argmin(axis=1)
        return np.asarray(places, np.intp)[best]

    def share(self, place: int) -> float:
        """Return the share of draws that choose the candidate at `place`."""
        return float((self.misses.argmin(axis=1) == place).mean())

    def _log_t(self, load_gbps: float) -> Array:
        below = self.capacity_gbps - load_gbps
        reached = below > 0
        log_t = np.full(len(below), np.inf)
        log_t[reached] = self.log_a[reached] + self.b[reached] * below[reached] ** -self.n[reached]
        return log_t


@dataclass(frozen=True, eq=False)
class _Shapes:
    """The shapes that a candidate allows: n and C, and x = (C - BW)^-n by shape and level."""

    n: Array
    capacity_gbps: Array
    x: Array


def redraw_fits(sweep: Sweep, among: Sequence[Ranges], seed: int) -> RedrawnFits | None:
    """Choose among candidates, given by their search ranges, and fit the chosen one for each redrawn sweep.

    None with fewer than four repetitions at some level.
    """
    log_t = sweep.redraw(seed)
    if log_t is None:
        return None
    shapes = [_shapes(sweep, each) for each in among]
    misses = np.stack([_misses(each, log_t) for each in shapes], axis=1)
    best = misses.argmin(axis=1)
    coefficients = np.empty((4, len(log_t)))
    for place, each in enumerate(shapes):
        own = best == place
        coefficients[:, own] = _fit_best(each, log_t[own])
    log_a, b, n, capacity_gbps = coefficients
    return RedrawnFits(log_a, b, n, capacity_gbps, misses)


def _shapes(sweep: Sweep, ranges: Ranges) -> _Shapes:
    n = np.geomspace(*ranges.n, GRID if ranges.n_free else 1)
    gaps = np.geomspace(*ranges.gap_gbps, GRID if ranges.capacity_free else 1)
    n, gaps = (each.ravel() for each in np.broadcast_arrays(n[:, None], gaps))
    below = gaps[:, None] + ranges.top_gbps - sweep.loads_gbps
    return _Shapes(n, gaps + ranges.top_gbps, below ** -n[:, None])


def _misses(shapes: _Shapes, log_t: Array) -> Array:
    """Return by draw the mean square of the errors at levels left out."""
    levels = log_t.shape[1]
    errors = np.empty_like(log_t)
    for left in range(levels):
        others = np.arange(levels) != left
        best, slope, mean_x = _solve(shapes.x[:, others], log_t[:, others])
        predicted = log_t[:, others].mean(axis=1) + slope * (shapes.x[best, left] - mean_x)
        errors[:, left] = log_t[:, left] - predicted
    return np.asarray((errors**2).mean(axis=1))


def _fit_best(shapes: _Shapes, log_t: Array) -> tuple[Array, Array, Array, Array]:
    """Return log A, B, n and C by draw."""
    best, b, mean_x = _solve(shapes.x, log_t)
    return log_t.mean(axis=1) - b * mean_x, b, shapes.n[best], shapes.capacity_gbps[best]


def _solve(x: Array, log_t: Array) -> tuple[NDArray[np.intp], Array, Array]:
    """Return by draw the shape of the least error, its slope and its mean x. `x` has shape (shapes, levels)."""
    mean_x = x.mean(axis=1)
    away = x - mean_x[:, None]
    sizes = np.linalg.norm(away, axis=1)
    along = (log_t - log_t.mean(axis=1, keepdims=True)) @ (away / sizes[:, None]).T
    best = np.abs(along).argmax(axis=1)
    return best, along[np.arange(len(along)), best] / sizes[best], mean_x[best]
