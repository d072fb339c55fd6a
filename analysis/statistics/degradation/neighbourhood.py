# SPDX-License-Identifier: Apache-2.0
"""The curves that fit a sweep nearly as well as the best one, from which intervals of fits and predictions follow.

An interval holds every value that a quantity has on some curve that fits nearly as well (profile likelihood). The wider
of two limits decides what is nearly as well. One comes from the scatter of levels about the curve, taken as uniform (an
F test). The other comes from the scatter of repetitions, level by level, because it grows with the load (with
Satterthwaite's degrees of freedom). A level that was not repeated contributes its residual instead, enlarged by its
leverage (HC3: MacKinnon and White 1985). docs/results/degradation.md says how often these intervals hold the
truth.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from analysis.statistics.degradation.model import safe_exp
from analysis.statistics.degradation.shapes import Ranges, Shapes, search_shapes
from analysis.statistics.degradation.sweep import Level, Sweep
from analysis.statistics.intervals import Array, Interval

_TAIL = 0.975
_EPSILON = 1e-9
"""Keeps a level that decides a coefficient alone, and so has no residual, from dividing by zero."""


class Neighbourhood:
    """The best curve through a sweep's log mean times, and the set of curves that fit nearly as well."""

    def __init__(self, sweep: Sweep, ranges: Ranges) -> None:
        self.ranges = ranges
        self._loads_gbps, self._log_t = sweep.loads_gbps, np.log(sweep.means_s)
        self.best = search_shapes(self._loads_gbps, self._log_t, ranges).best
        self._influence = _pseudo_inverse(self._gradients(self._loads_gbps))
        self._unit = np.eye(len(self._influence))
        self._freedom = len(sweep.levels) - len(self._unit)
        self._even_variance = float(self.best.error) / self._freedom
        own = self._deleted_residuals() ** 2
        self._variances = np.array([_variance(*pair) for pair in zip(sweep.levels, own, strict=True)])
        self._freedoms = np.array([max(len(level.repetitions_s) - 1, 1) for level in sweep.levels])

    def interval_of_a_s(self) -> Interval:
        """Return the interval of A, s, which is t without the effect of B."""
        allowance = self._allowance(self._unit[0])
        shapes = self._within(allowance)
        low, high = self._extent(shapes, shapes.log_t(0.0), shapes.variance(0.0), allowance)
        if self.ranges.reach_power_law(shapes):
            low = -math.inf if (shapes.b > 0).any() else low
            high = math.inf if (shapes.b < 0).any() else high
        return float(safe_exp(low)), float(safe_exp(high))

    def interval_of_b(self) -> Interval:
        """Return the interval of B."""
        allowance = self._allowance(self._unit[1])
        shapes = self._within(allowance)
        low, high = self._extent(shapes, shapes.b, 1 / shapes.spread_x, allowance)
        if self.ranges.reach_power_law(shapes) or self.ranges.reach_infinite_n(shapes):
            low = -math.inf if low < 0 else low
            high = math.inf if high > 0 else high
        return low, high

    def interval_of_n(self) -> Interval:
        """Return the interval of n, which must be a fitted coefficient."""
        shapes = self._within(self._allowance(self._unit[2]))
        return open_ends((shapes.n.min(), shapes.n.max()), self.ranges.n)

    def interval_of_capacity_gbps(self) -> Interval:
        """Return the interval of C, Gbit/s, which must be a fitted coefficient."""
        shapes = self._within(self._allowance(self._unit[-1]))
        low, high = open_ends((shapes.gap_gbps.min(), shapes.gap_gbps.max()), self.ranges.gap_gbps)
        return self.ranges.top_gbps + low, self.ranges.top_gbps + high

    def intervals_of_log_t(self, loads_gbps: Array) -> Array:
        """Return the intervals of the curve's log t at each load; shape (loads, 2)."""
        allowances = [self._allowance(gradient) for gradient in self._gradients(loads_gbps)]
        shapes = self._within(max(allowances))
        return np.array([self._log_t_at(*pair, shapes) for pair in zip(loads_gbps, allowances, strict=True)])

    def scatter(self, load_gbps: float) -> float:
        """Return the distance from the curve within which 95 % of measured log t at a load lie."""
        own = np.interp(load_gbps, self._loads_gbps, self._variances)
        return float(scipy.special.stdtrit(self._freedom, _TAIL) * np.sqrt(max(own, self._even_variance)))

    def _log_t_at(self, load_gbps: float, allowance: float, shapes: Shapes) -> Interval:
        below = shapes.gap_gbps + self.ranges.top_gbps - load_gbps
        reached = below > 0
        within = shapes.select(reached)
        x = below[reached] ** -within.n
        low, high = self._extent(within, within.log_t(x), within.variance(x), allowance)
        return low, high if reached.all() else math.inf

    def _gradients(self, loads_gbps: Array) -> Array:
        """Return gradients of log t at loads by log A, B, and fitted n and C; shape (loads, coefficients)."""
        below = self.best.gap_gbps + self.ranges.top_gbps - loads_gbps
        x = below**-self.best.n
        columns = [np.ones_like(x), x]
        if self.ranges.n_free:
            columns.append(-self.best.b * x * np.log(below))
        if self.ranges.capacity_free:
            columns.append(-self.best.b * self.best.n * x / below)
        return np.stack(columns, axis=1)

    def _deleted_residuals(self) -> Array:
        """Return the distance of each level from the curve, about as if that had been fitted without it."""
        gradients = self._gradients(self._loads_gbps)
        leverage = np.einsum("lc,cl->l", gradients, self._influence)
        x = gradients[:, 1]
        return np.asarray((self._log_t - self.best.log_t(x)) / np.maximum(1 - leverage, _EPSILON))

    def _allowance(self, gradient: Array) -> float:
        """Return how much the squared error may grow along the interval of a quantity with this gradient."""
        weights = gradient @ self._influence
        shares = weights**2 * self._variances
        even = float(scipy.special.stdtrit(self._freedom, _TAIL)) ** 2 * self._even_variance
        if shares.sum() == 0:
            return even
        freedom = shares.sum() ** 2 / (shares**2 / self._freedoms).sum()
        return max(even, float(scipy.special.stdtrit(freedom, _TAIL) ** 2 * shares.sum() / (weights**2).sum()))

    def _within(self, allowance: float) -> Shapes:
        """Return the shapes whose error exceeds the least by at most `allowance`."""
        shapes = search_shapes(self._loads_gbps, self._log_t, self.ranges, allowance)
        return shapes.select(self._fits_well(shapes, allowance))

    def _fits_well(self, shapes: Shapes, allowance: float) -> NDArray[np.bool_]:
        """Return which of them fit nearly as well; the best of them counts, so that rounding leaves one."""
        return np.asarray((shapes.error <= self.best.error + allowance) | (shapes.error == shapes.error.min()))

    def _extent(self, shapes: Shapes, values: Array, variances: Array, allowance: float) -> Interval:
        """Return the least and the greatest value of curves of these shapes, whose A and B may vary while they fit.

        `values` are those at each shape's best A and B; `variances` are multiples of the residual variance.
        """
        fitting = self._fits_well(shapes, allowance)
        reach = np.sqrt(np.maximum(self.best.error + allowance - shapes.error, 0) * variances)
        return float((values - reach)[fitting].min()), float((values + reach)[fitting].max())


def _pseudo_inverse(gradients: Array) -> Array:
    """Return the pseudo-inverse of columns that differ by orders of magnitude."""
    sizes = np.linalg.norm(gradients, axis=0)
    return np.asarray(np.linalg.pinv(gradients / sizes) / sizes[:, None])


def _variance(level: Level, single: float) -> float:
    """Return the variance of the logarithm of a level's mean time; `single` if it was not repeated."""
    means_s = level.means_s
    if len(means_s) == 1:
        return single
    return float(means_s.var(ddof=1) / len(means_s) / means_s.mean() ** 2)


def open_ends(ends: tuple[float, float], searched: tuple[float, float]) -> Interval:
    """Return an interval whose ends are opened where they lie at the limits of the search."""
    low, high = ends
    return (
        0.0 if math.isclose(low, searched[0], rel_tol=1e-9) else float(low),
        math.inf if math.isclose(high, searched[1], rel_tol=1e-9) else float(high),
    )
