# SPDX-License-Identifier: Apache-2.0
"""Fits of t = A exp(B / (C - BW)^n) to a sweep (equation 3.7), and their predictions.

A fit minimizes the squared errors of the logarithms of levels' mean times, like a trend line on a logarithmic axis
(Figure B-2). Logarithms keep the heaviest load from dominating. Intervals are those of neighbourhood.py.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from analysis.statistics.degradation.model import iteration_time_s, safe_exp
from analysis.statistics.degradation.neighbourhood import Neighbourhood, open_ends
from analysis.statistics.degradation.resampling import RedrawnFits
from analysis.statistics.degradation.shapes import EXPONENT_RANGE, GAP_RANGE, Ranges
from analysis.statistics.degradation.sweep import DegradationError, Sweep
from analysis.statistics.intervals import Array, Interval, percentiles95

EXTRA_LEVELS = 2
"""Levels that a fit needs beyond one for each coefficient, because fewer show hardly any scatter to judge it by."""


@dataclass(frozen=True)
class Estimate:
    """A coefficient and its 95 % interval, whose unbounded ends are 0 or infinite.

    The interval is None if the coefficient was fixed, and fixed in every redrawn sweep too.
    """

    value: float
    ci95: Interval | None


@dataclass(frozen=True)
class RSquared:
    """Coefficients of determination over the levels: of log t, to which models are fitted, and of t."""

    log: float
    linear: float


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model: A in s, B in (Gbit/s)^n, C in Gbit/s."""

    a_s: Estimate
    b: Estimate
    n: Estimate
    capacity_gbps: Estimate
    r_squared: RSquared
    sweep: Sweep
    near: Neighbourhood
    redrawn: RedrawnFits | None = None
    """Fits to redrawn sweeps if the model was chosen among candidates; intervals cover these fits too."""

    def times_s(self, loads_gbps: Array) -> Array:
        """Return the curve's iteration times, s, at loads below C."""
        return iteration_time_s(loads_gbps, self.a_s.value, self.b.value, self.n.value, self.capacity_gbps.value)

    def intervals_of_log_t(self, loads_gbps: Array) -> Array:
        """Return the intervals of the curve's log t at each load; shape (loads, 2)."""
        near = self.near.intervals_of_log_t(loads_gbps)
        return near if self.redrawn is None else _hull(near, self.redrawn.intervals_of_log_t(loads_gbps))

    def with_choice_uncertainty(self, redrawn: RedrawnFits) -> "Fit":
        """Return the fit with intervals that also cover the choices and fits of redrawn sweeps."""
        return replace(
            self,
            redrawn=redrawn,
            a_s=_widen(self.a_s, safe_exp(redrawn.log_a)),
            b=_widen(self.b, redrawn.b),
            n=_widen(self.n, redrawn.n, EXPONENT_RANGE),
            capacity_gbps=_widen(self.capacity_gbps, redrawn.capacity_gbps),
        )


@dataclass(frozen=True)
class Prediction:
    """The predicted mean iteration time at a load, and the interval that holds 95 % of measured means."""

    load_gbps: float
    time_s: float
    ci95: Interval
    extrapolates: bool
    """True if the load lies outside the measured loads."""


def fit_model(sweep: Sweep, *, n: float | None, capacity_gbps: float | None) -> Fit:
    """Fit equation 3.7 to the levels' means; `n` and `capacity_gbps` are fitted if None, else fixed.

    Raises DegradationError with fewer levels than coefficients and `EXTRA_LEVELS`, or if all levels have the same mean.
    It also raises DegradationError for a load at or above the capacity, and for an n that is not positive.
    """
    ranges = search_ranges(sweep, n, capacity_gbps)
    near = Neighbourhood(sweep, ranges)
    a_s, b = (
        Estimate(float(np.exp(near.best.log_t(0.0))), near.interval_of_a_s()),
        Estimate(float(near.best.b), near.interval_of_b()),
    )
    fitted_n = Estimate(float(near.best.n), near.interval_of_n()) if n is None else Estimate(n, None)
    capacity = (
        Estimate(ranges.top_gbps + float(near.best.gap_gbps), near.interval_of_capacity_gbps())
        if capacity_gbps is None
        else Estimate(capacity_gbps, None)
    )
    times_s = iteration_time_s(sweep.loads_gbps, a_s.value, b.value, fitted_n.value, capacity.value)
    return Fit(a_s, b, fitted_n, capacity, r_squared(sweep.means_s, times_s), sweep, near)


def search_ranges(sweep: Sweep, n: float | None, capacity_gbps: float | None) -> Ranges:
    """Return the ranges of n and C that `fit_model` searches. Raises DegradationError as `fit_model` does."""
    needed = 2 + (n is None) + (capacity_gbps is None) + EXTRA_LEVELS
    sweep.require_levels(needed, f"for {needed - EXTRA_LEVELS} coefficients")
    if np.ptp(np.log(sweep.means_s)) == 0:
        raise DegradationError(f"found {sweep.means_s[0]:g} s at every level, expected times that differ")
    if n is not None and n <= 0:
        raise DegradationError(f"found n = {n:g}, expected a positive one")
    top = float(sweep.loads_gbps[-1])
    if capacity_gbps is None:
        return Ranges(EXPONENT_RANGE if n is None else (n, n), (GAP_RANGE[0] * top, GAP_RANGE[1] * top), top)
    if capacity_gbps <= top:
        raise DegradationError(
            f"found a load of {top:g} Gbit/s, expected loads below C = {capacity_gbps:g}",
            "leave out levels that cross traffic filled alone, or let C be fitted",
        )
    gap = capacity_gbps - top
    return Ranges(EXPONENT_RANGE if n is None else (n, n), (gap, gap), top)


def r_squared(means_s: Array, times_s: Array) -> RSquared:
    """Return the share of the variation of `means_s` over the levels that a curve's `times_s` explain."""
    return RSquared(log=_determination(np.log(means_s), np.log(times_s)), linear=_determination(means_s, times_s))


def band_s(model: Fit, loads_gbps: Array) -> tuple[Array, Array]:
    """Return the lower and upper ends, s, of the 95 % band of the model's curve at each load.

    Raises DegradationError as `predict` does.
    """
    for load in loads_gbps:
        _check(model, load)
    low, high = safe_exp(model.intervals_of_log_t(loads_gbps)).T
    return low, high


def predict(model: Fit, load_gbps: float) -> Prediction:
    """Return the predicted iteration time at a load; its interval is for a measured mean, not only for the curve.

    Raises DegradationError for a load below 0, and at or above the model's C.
    """
    _check(model, load_gbps)
    below_gbps = model.capacity_gbps.value - load_gbps
    centre = math.log(model.a_s.value) + model.b.value / below_gbps**model.n.value
    low, high = model.intervals_of_log_t(np.array([load_gbps]))[0]
    scatter = model.near.scatter(load_gbps)
    lowest, highest = model.sweep.loads_gbps[[0, -1]]
    ends = safe_exp(np.array([centre - np.hypot(centre - low, scatter), centre + np.hypot(high - centre, scatter)]))
    return Prediction(
        load_gbps,
        time_s=float(safe_exp(centre)),
        ci95=(float(ends[0]), float(ends[1])),
        extrapolates=not lowest <= load_gbps <= highest,
    )


def _check(model: Fit, load_gbps: float) -> None:
    capacity = model.capacity_gbps.value
    if not 0 <= load_gbps < capacity:
        raise DegradationError(
            f"found a load of {load_gbps:g} Gbit/s, expected one from 0 to below the model's C = {capacity:g}"
        )


def _widen(estimate: Estimate, drawn: Array, searched: Interval = (0.0, math.inf)) -> Estimate:
    """Return the estimate with an interval that holds both; a coefficient fixed in every draw stays fixed."""
    low, high = open_ends(percentiles95(drawn), searched)
    if estimate.ci95 is not None:
        low, high = min(low, estimate.ci95[0]), max(high, estimate.ci95[1])
    return estimate if low == high else replace(estimate, ci95=(low, high))


def _hull(one: Array, other: Array) -> Array:
    return np.stack([np.minimum(one[:, 0], other[:, 0]), np.maximum(one[:, 1], other[:, 1])], axis=1)


def _determination(measured: Array, explained: Array) -> float:
    return float(1 - ((measured - explained) ** 2).sum() / ((measured - measured.mean()) ** 2).sum())
