# SPDX-License-Identifier: Apache-2.0
"""The congestion point: where congestion first dominates the curve (section 3.2, Appendix A.2, Figure A-1).

Appendix A.2 draws two lines by eye on iteration time against load, and takes the measured level nearest to where they
cross. Here, on the logarithmic axis of the chapter's figures:

- the linear portion is the longest run of first levels whose last one is not more than `BEND` above the line of least
  squares through the run. Only the end of a run is tried, so noise at a low load does not cut it short;
- the tangent is the line of least squares through the next `TANGENT_LEVELS` levels, or the last two;
- the congestion point is the level nearest in load to the crossing, with its mean iteration time.

Salamy states neither the axis nor how far off the line is off it: `BEND` is ours, and docs/degradation.md says what
it affects.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.bootstrap import DRAWS, Array, Interval, interval95
from analysis.statistics.degradation.demand import experimental_mb
from analysis.statistics.degradation.sweep import DegradationError, Sweep

BEND = 0.05
LINEAR_LEVELS = 3
"""A line through two levels fits any two."""
TANGENT_LEVELS = 3
"""What "the first several points" of section 3.2 are taken to be."""
LEAST_TANGENT_LEVELS = 2
LEAST_FOUND = 0.95
"""The share of resamples that must have a congestion point for an interval to be given."""


@dataclass(frozen=True)
class Line:
    """log t = intercept + slope x load, t in s and load in Gbit/s."""

    slope: float
    intercept: float

    def times_s(self, loads_gbps: Array) -> Array:
        """Iteration times along it."""
        return np.exp(self.intercept + self.slope * loads_gbps)


@dataclass(frozen=True)
class CongestionPoint:
    """Where the two lines cross, and the level next to it, which is what Salamy calls the congestion point."""

    load_gbps: float
    time_s: float
    demand_mb: float
    """What the link could carry for the job in that time: Tables 3.2, 3.4 and 3.6."""
    demand_mb_ci95: Interval | None
    crossing_gbps: float
    crossing_gbps_ci95: Interval | None
    linear: Line
    tangent: Line
    linear_levels: int


@dataclass(frozen=True, eq=False)
class _Construction:
    """Figure A-1 for many curves at once; arrays of shape (curves,), NaN where lines do not cross among the levels."""

    linear_levels: Array
    linear: Array
    """Slope and intercept; shape (2, curves)."""
    tangent: Array
    crossing_gbps: Array


def congestion_point(sweep: Sweep, *, seed: int = 1) -> CongestionPoint:
    """The congestion point of a sweep, with intervals from a bootstrap over repetitions (statistics/bootstrap.py).

    Those are None with fewer than four repetitions at some level, and where many resamples have no congestion point.
    Raises DegradationError with fewer than five levels, and where the levels show no congestion point.
    """
    sweep.require(LINEAR_LEVELS + LEAST_TANGENT_LEVELS, "for a line and a tangent")
    loads_gbps, means_s = sweep.loads_gbps, sweep.means_s
    drawn = _construct(loads_gbps, np.log(means_s)[None])
    if np.isnan(drawn.crossing_gbps[0]):
        raise DegradationError(
            f"found no bend between {loads_gbps[0]:g} and {loads_gbps[-1]:g} Gbit/s, expected a straight portion, "
            f"then at least {LEAST_TANGENT_LEVELS} levels that rise from it",
            "add levels: below if training is slowed down from the first, above if it hardly is at the last",
        )
    level = int(_nearest(loads_gbps, drawn.crossing_gbps)[0])
    crossings, demands = _resampled(sweep, seed)
    repetitions = min(len(each.repetitions_s) for each in sweep.levels)
    return CongestionPoint(
        load_gbps=float(loads_gbps[level]),
        time_s=float(means_s[level]),
        demand_mb=float(experimental_mb(sweep.available_gbps[level], means_s[level])),
        demand_mb_ci95=_interval(demands, repetitions),
        crossing_gbps=float(drawn.crossing_gbps[0]),
        crossing_gbps_ci95=_interval(crossings, repetitions),
        linear=Line(*map(float, drawn.linear[:, 0])),
        tangent=Line(*map(float, drawn.tangent[:, 0])),
        linear_levels=int(drawn.linear_levels[0]),
    )


def _construct(loads_gbps: Array, log_t: Array) -> _Construction:
    """`log_t` has shape (curves, levels)."""
    curves, levels = log_t.shape
    result = _Construction(
        np.zeros(curves), np.full((2, curves), np.nan), np.full((2, curves), np.nan), np.full(curves, np.nan)
    )
    for run in range(LINEAR_LEVELS, levels + 1):
        linear = _line(loads_gbps[:run], log_t[:, :run])
        straight = log_t[:, run - 1] - np.polyval(linear, loads_gbps[run - 1]) <= np.log1p(BEND)
        result.linear_levels[straight] = run
        result.linear[:, straight] = linear[:, straight]
        result.tangent[:, straight] = _tangent(loads_gbps[run:], log_t[straight, run:])
    slopes, intercepts = result.tangent - result.linear
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -intercepts / slopes
    among = (slopes > 0) & (crossing >= loads_gbps[0]) & (crossing <= loads_gbps[-1])
    result.crossing_gbps[among] = crossing[among]
    return result


def _line(loads_gbps: Array, log_t: Array) -> Array:
    """Slope and intercept of each curve's line of least squares."""
    away = loads_gbps - loads_gbps.mean()
    slopes = log_t @ away / (away @ away)
    return np.stack([slopes, log_t.mean(axis=1) - slopes * loads_gbps.mean()])


def _tangent(loads_gbps: Array, log_t: Array) -> Array:
    if len(loads_gbps) < LEAST_TANGENT_LEVELS:
        return np.full((2, len(log_t)), np.nan)
    return _line(loads_gbps[:TANGENT_LEVELS], log_t[:, :TANGENT_LEVELS])


def _nearest(loads_gbps: Array, crossing_gbps: Array) -> NDArray[np.intp]:
    return np.asarray(np.abs(loads_gbps - crossing_gbps[:, None]).argmin(axis=1))


def _resampled(sweep: Sweep, seed: int) -> tuple[Array, Array]:
    """Crossings in Gbit/s and demands in MB of resampled sweeps, those without a congestion point left as NaN."""
    generator = np.random.default_rng(seed)
    means_s = np.stack([_resampled_means(level.means_s, generator) for level in sweep.levels], axis=1)
    crossings = _construct(sweep.loads_gbps, np.log(means_s)).crossing_gbps
    levels = _nearest(sweep.loads_gbps, crossings)
    times_s = means_s[np.arange(DRAWS), levels]
    demands = np.where(np.isnan(crossings), np.nan, experimental_mb(sweep.available_gbps[levels], times_s))
    return crossings, demands


def _resampled_means(means_s: Array, generator: np.random.Generator) -> Array:
    return np.asarray(means_s[generator.integers(len(means_s), size=(DRAWS, len(means_s)))].mean(axis=1))


def _interval(replicates: Array, repetitions: int) -> Interval | None:
    found = replicates[~np.isnan(replicates)]
    return interval95(found, repetitions) if len(found) >= LEAST_FOUND * len(replicates) else None
