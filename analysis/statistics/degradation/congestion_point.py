# SPDX-License-Identifier: Apache-2.0
"""The congestion point: where congestion first dominates the curve (section 3.2, Appendix A.2, Figure A-1).

Appendix A.2 draws two lines by eye on iteration time against load, and takes the measured level nearest to where they
cross. Here, on the logarithmic axis of the chapter's figures:

- the linear portion is the longest run of first levels that is straight and nearly flat. Straight: its last level lies
  no more than `BEND` above the line of least squares through those before it; only the end of a run is tried, so noise
  at a low load does not cut it short. Nearly flat: the slope of the line through it is nearer to 0 than to 1 / (C -
  BW). The former is the slope of a link with bandwidth to spare, and the latter that of a saturated link, where t x (C
  - BW) is an iteration's data. Section 3.2 fits it to "the sufficient (spare) bandwidth region";
- the tangent is the line of least squares through the next `TANGENT_LEVELS` levels, or the last two;
- the congestion point is the level nearest in load to the crossing, with its mean iteration time.

Salamy states neither the axis, nor how far a level may lie off the line, nor how flat the line must be. `BEND` and
`NEARLY_FLAT` are ours; docs/results/salamy-link.md says what they affect.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.degradation.demand import experimental_mb
from analysis.statistics.degradation.sweep import DegradationError, Sweep
from analysis.statistics.intervals import Array, Interval, percentiles95

BEND = 0.05
NEARLY_FLAT = 0.5
"""Largest slope of the linear portion, over the slope of a saturated link at the portion's last level."""
LINEAR_LEVELS = 2
"""Least levels of the linear portion. A line fits any two levels but is seldom nearly flat; three or more must be
straight too.
"""
TANGENT_LEVELS = 3
"""Number of levels through which the tangent is drawn: "the first several points" of section 3.2."""
MIN_TANGENT_LEVELS = 2
MIN_FOUND = 0.95
"""Least share of redrawn sweeps with a congestion point for which an interval is given."""


@dataclass(frozen=True)
class Line:
    """A line log t = intercept + slope x load, with t in s and load in Gbit/s."""

    slope: float
    intercept: float

    def times_s(self, loads_gbps: Array) -> Array:
        """Return the iteration times, s, along the line at these loads."""
        return np.exp(self.intercept + self.slope * loads_gbps)


@dataclass(frozen=True)
class CongestionPoint:
    """The crossing of the two lines, and the level nearest to it, which Salamy calls the congestion point."""

    load_gbps: float
    time_s: float
    demand_mb: float
    """Data that the link could carry for the job in the level's iteration time, MB (Tables 3.2, 3.4 and 3.6)."""
    demand_ci95_mb: Interval | None
    crossing_gbps: float
    crossing_ci95_gbps: Interval | None
    linear: Line
    tangent: Line
    linear_levels: int
    linear_slope: float
    """Slope of the linear portion over the slope of a saturated link at its last level; 0 is flat."""


@dataclass(frozen=True, eq=False)
class _Construction:
    """Figure A-1 for many curves at once; arrays of shape (curves,), NaN if lines do not cross among the levels."""

    linear_levels: NDArray[np.intp]
    """0 where no run of first levels is straight and nearly flat."""
    linear: Array
    """Slope and intercept; shape (2, curves)."""
    tangent: Array
    crossing_gbps: Array


def congestion_point(sweep: Sweep, *, nearly_flat: float = NEARLY_FLAT, seed: int = 1) -> CongestionPoint:
    """Return the congestion point of a sweep, with intervals from the repetitions' scatter.

    With an infinite `nearly_flat` any straight portion suffices, as in Appendix A.2. Intervals are None with fewer than
    four repetitions at some level, and if many redrawn sweeps have no congestion point. Raises DegradationError with
    fewer than four levels, and if the levels show no congestion point.
    """
    sweep.require_levels(LINEAR_LEVELS + MIN_TANGENT_LEVELS, "for a line and a tangent")
    loads_gbps, means_s = sweep.loads_gbps, sweep.means_s
    drawn = _construct_lines(sweep, np.log(means_s)[None], nearly_flat)
    run = int(drawn.linear_levels[0])
    _require_bend(drawn, loads_gbps)
    level = int(_nearest(loads_gbps, drawn.crossing_gbps)[0])
    crossings, demands = _resample_points(sweep, nearly_flat, seed)
    linear = Line(*map(float, drawn.linear[:, 0]))
    return CongestionPoint(
        load_gbps=float(loads_gbps[level]),
        time_s=float(means_s[level]),
        demand_mb=float(experimental_mb(sweep.available_gbps[level], means_s[level])),
        demand_ci95_mb=_interval(demands),
        crossing_gbps=float(drawn.crossing_gbps[0]),
        crossing_ci95_gbps=_interval(crossings),
        linear=linear,
        tangent=Line(*map(float, drawn.tangent[:, 0])),
        linear_levels=run,
        linear_slope=linear.slope * float(sweep.available_gbps[run - 1]),
    )


def _require_bend(drawn: _Construction, loads_gbps: Array) -> None:
    if drawn.linear_levels[0] == 0:
        raise DegradationError(
            f"found iterations that lengthen from {loads_gbps[0]:g} Gbit/s on, expected a portion of at least "
            f"{LINEAR_LEVELS} levels that is straight and nearly flat",
            "add levels at low loads; if there are some, training is slowed down from the first",
        )
    if np.isnan(drawn.crossing_gbps[0]):
        raise DegradationError(
            f"found no bend between {loads_gbps[0]:g} and {loads_gbps[-1]:g} Gbit/s, expected a straight portion, "
            f"then at least {MIN_TANGENT_LEVELS} levels that rise from it",
            "add levels above: training is hardly slowed down at the last",
        )


def _construct_lines(sweep: Sweep, log_t: Array, nearly_flat: float) -> _Construction:
    """`log_t` has shape (curves, levels)."""
    loads_gbps, (curves, levels) = sweep.loads_gbps, log_t.shape
    lines = np.full((2, curves), np.nan)
    result = _Construction(np.zeros(curves, np.intp), lines, lines.copy(), lines[0].copy())
    for run in range(LINEAR_LEVELS, levels + 1):
        linear = _line(loads_gbps[:run], log_t[:, :run])
        chosen = linear[0] * sweep.available_gbps[run - 1] <= nearly_flat
        if run > LINEAR_LEVELS:
            before = _line(loads_gbps[: run - 1], log_t[:, : run - 1])
            chosen &= log_t[:, run - 1] - np.polyval(before, loads_gbps[run - 1]) <= np.log1p(BEND)
        result.linear_levels[chosen] = run
        result.linear[:, chosen] = linear[:, chosen]
        result.tangent[:, chosen] = _tangent(loads_gbps[run:], log_t[chosen, run:])
    slopes, intercepts = result.tangent - result.linear
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -intercepts / slopes
    among = (slopes > 0) & (crossing >= loads_gbps[0]) & (crossing <= loads_gbps[-1])
    result.crossing_gbps[among] = crossing[among]
    return result


def _line(loads_gbps: Array, log_t: Array) -> Array:
    """Return slope and intercept of each curve's line of least squares."""
    away = loads_gbps - loads_gbps.mean()
    slopes = log_t @ away / (away @ away)
    return np.stack([slopes, log_t.mean(axis=1) - slopes * loads_gbps.mean()])


def _tangent(loads_gbps: Array, log_t: Array) -> Array:
    if len(loads_gbps) < MIN_TANGENT_LEVELS:
        return np.full((2, len(log_t)), np.nan)
    return _line(loads_gbps[:TANGENT_LEVELS], log_t[:, :TANGENT_LEVELS])


def _nearest(loads_gbps: Array, crossing_gbps: Array) -> NDArray[np.intp]:
    return np.asarray(np.abs(loads_gbps - crossing_gbps[:, None]).argmin(axis=1))


def _resample_points(sweep: Sweep, nearly_flat: float, seed: int) -> tuple[Array, Array] | tuple[None, None]:
    """Return crossings in Gbit/s and demands in MB of redrawn sweeps, NaN without a congestion point."""
    log_t = sweep.redraw(seed)
    if log_t is None:
        return None, None
    crossings = _construct_lines(sweep, log_t, nearly_flat).crossing_gbps
    levels = _nearest(sweep.loads_gbps, crossings)
    times_s = np.exp(log_t[np.arange(len(log_t)), levels])
    demands = np.where(np.isnan(crossings), np.nan, experimental_mb(sweep.available_gbps[levels], times_s))
    return crossings, demands


def _interval(drawn: Array | None) -> Interval | None:
    found = np.empty(0) if drawn is None else drawn[~np.isnan(drawn)]
    return percentiles95(found) if drawn is not None and len(found) >= MIN_FOUND * len(drawn) else None
