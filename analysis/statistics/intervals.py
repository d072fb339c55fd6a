# SPDX-License-Identifier: Apache-2.0
"""Intervals for figures made of repetitions of autocorrelated iterations.

Iterations of one repetition depend on each other in unknown ways, but repetitions are independent. So only the scatter
among repetitions shows how far a figure may be off, with Student's t because repetitions are few:

- a median or a mean of all iterations has an interval as wide as the repetitions' own medians or means say;
- a median between two modes jumps from one to the other, which few repetitions do not show. Where Otsu's
  criterion (1979) finds two groups, a median's interval comes from ranks, like that of a 99th percentile;
- a 99th percentile needs more: of 250 iterations two or three lie beyond it. Its interval runs between two of the
  longest iterations, by how many independent iterations the repetitions are worth (Woodruff 1952; Korn and Graubard
  1998, for samples that come in clusters);
- intervals of ratios and averages are combined from the intervals of their parts (MOVER: Zou and Donner 2008).

A run that grows until its verdicts are decided is looked at repeatedly, and each look could decide wrongly. Within
`repeated_looks`, intervals are wide enough to hold the truth at all looks together.

tests/analysis/reading/test_intervals.py measures and prints how often intervals hold the truth.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Interval = tuple[float, float]
Measured = tuple[float, Interval | None]
"""A figure and its 95 % interval."""

MIN_REPETITIONS = 4
"""Least number of repetitions for an interval; with fewer it would be a guess."""
MIN_TAIL = 1000
"""Least iterations, over all repetitions, for a 99th percentile: ten lie beyond it; with fewer it would be a guess."""
TAIL = 0.99
SPLIT_SHARE = 0.7
"""Least share of the variance between two groups at which a median's interval comes from ranks. A normal distribution
has 0.64. Below 0.7, intervals by Student's t cover 90 % or more; above, as few as 60 %.
"""
MODES_SHARE = 0.8
"""Least share of the variance between two groups that are reported as two modes; an even distribution has 0.75."""
MIN_MODE = 0.15
"""Least share of iterations in a mode; a median does not reach a smaller one."""
MIN_DISTANCE = 0.01
"""Least distance of two modes, as a share of the upper one; a smaller one is within iterations' variation."""
_BEYOND = 0.025
"""On each side of a 95 % interval."""
_looks: ContextVar[int] = ContextVar("looks", default=1)


@contextmanager
def repeated_looks(looks: int) -> Iterator[None]:
    """Make intervals hold the truth at all of so many looks at growing data together, in 95 % of runs.

    These are repeated confidence intervals (Jennison and Turnbull, Interim Analyses: The Repeated Confidence Interval
    Approach, JRSS B, 1989). Each look has an equal part of the 5 % (Bonferroni). This holds for every kind of interval,
    any distance of the looks and any rule for the end. At the last of four looks, such intervals are 6 % wider than
    those of Pocock (1977) and 23 % wider than those of O'Brien and Fleming (1979). These suppose normal means of known
    variance and planned sizes, and spending functions (Lan and DeMets, 1983) suppose a known final size.
    """
    token = _looks.set(looks)
    try:
        yield
    finally:
        _looks.reset(token)


def _beyond() -> float:
    """Return the share on each side of an interval at one look."""
    return _BEYOND / _looks.get()


def estimate(
    repetitions: Sequence[Array], statistic: Callable[[Array], float], *, at_least: float = -math.inf
) -> Measured:
    """Return a statistic, such as a mean, of all repetitions together, with an interval by Student's t.

    Each repetition is an array of iterations. The interval does not extend below `at_least`, such as 0 for counts. The
    interval of a median of two groups of iterations comes from ranks.
    """
    together = np.concatenate(repetitions)
    if statistic is np.median and len(repetitions) >= MIN_REPETITIONS and _split(together).share > SPLIT_SHARE:
        return _quantile_estimate(repetitions, 0.5)
    figures = [float(statistic(each)) for each in repetitions]
    return scatter_interval(float(statistic(together)), figures, at_least)


def find_modes(iterations: Array) -> tuple[float, float] | None:
    """Return the means of the lower and the upper mode of iterations that have two modes; None for others.

    Iterations have two modes if the best split into two groups explains `MODES_SHARE` of their variance (Otsu, A
    Threshold Selection Method from Gray-Level Histograms, IEEE Trans. SMC, 1979).
    """
    split = _split(iterations)
    apart = split.high - split.low > MIN_DISTANCE * abs(split.high)
    balanced = MIN_MODE <= split.lower <= 1 - MIN_MODE
    return (split.low, split.high) if split.share > MODES_SHARE and apart and balanced else None


def stack_to_shortest(repetitions: Sequence[Array]) -> Array:
    """Return series as rows of one array, cut to the shortest, because jobs may depart at different iterations."""
    shortest = min(map(len, repetitions))
    return np.stack([each[:shortest] for each in repetitions])


def mean_of(figures: Sequence[float], *, at_least: float = -math.inf) -> Measured:
    """Return the mean of figures, one for each repetition, with its interval; `at_least` as in `estimate`."""
    return scatter_interval(math.fsum(figures) / len(figures), figures, at_least)


def scatter_interval(figure: float, figures: Sequence[float], at_least: float = -math.inf) -> Measured:
    """Return a figure with the interval that follows from the scatter of the repetitions' own figures.

    Infinite figures have no scatter; the interval then has all of the repetitions' figures.
    """
    count = len(figures)
    if count < MIN_REPETITIONS:
        return figure, None
    if not np.isfinite([figure, *figures]).all():
        return figure, (min(figure, *figures), max(figure, *figures))
    off = quantile_of_t(count) * float(np.std(figures, ddof=1)) / math.sqrt(count)
    return figure, (max(figure - off, at_least), figure + off)


def tail_estimate(repetitions: Sequence[Array]) -> Measured | None:
    """Return the 99th percentile of all iterations of all repetitions; None with fewer than `MIN_TAIL`.

    The interval ends at the longest iteration at most.
    """
    if sum(map(len, repetitions)) < MIN_TAIL:
        return None
    return _quantile_estimate(repetitions, TAIL)


def _quantile_estimate(repetitions: Sequence[Array], share: float) -> Measured:
    """Return the quantile of all iterations below which this share lies, with Woodruff's interval."""
    together = np.concatenate(repetitions)
    figure = float(np.quantile(together, share))
    if len(repetitions) < MIN_REPETITIONS:
        return figure, None
    above = [float(np.mean(each > figure)) for each in repetitions]
    worth = _effective_iterations(above, share, len(together))
    count = (1 - share) * worth
    beyond = [1 - _beyond(), _beyond()]
    shares = scipy.special.betaincinv([count + 1, count], [worth - count, worth - count + 1], beyond)
    low, high = np.quantile(together, 1 - shares, method="weibull")
    return figure, (float(low), float(high))


def ratio(one: Measured, other: Measured) -> Measured:
    """Return one positive figure over another, with its interval; both were measured independently."""
    (figure, ends), (other_figure, other_ends) = one, other
    value = figure / other_figure
    if ends is None or other_ends is None or min(*ends, *other_ends) <= 0:
        return value, None
    low, high = (math.log(end / figure) for end in ends)
    other_low, other_high = (math.log(end / other_figure) for end in other_ends)
    return value, (value * math.exp(-math.hypot(low, other_high)), value * math.exp(math.hypot(high, other_low)))


def paired_ratio(pairs: Sequence[tuple[Array, Array]], statistic: Callable[[Array], float]) -> Measured:
    """Return the ratio of a statistic of both sides, over all repetitions; sides of one repetition are paired.

    The interval follows from the scatter of the repetitions' ratios, which is smaller than the sides' scatter.
    """
    figure, *figures = (
        float(statistic(one)) / float(statistic(other))
        for one, other in (tuple(map(np.concatenate, zip(*pairs, strict=True))), *pairs)
    )
    return scatter_interval(figure, figures)


def difference(one: Measured, other: Measured) -> Measured:
    """Return one figure less another, with its interval; both were measured independently."""
    value, ends = average([one, transform(lambda each: -each, other)])
    return 2 * value, None if ends is None else (2 * ends[0], 2 * ends[1])


def average(measured: Sequence[Measured]) -> Measured:
    """Return the mean of independently measured figures, with its interval."""
    count = len(measured)
    value = math.fsum(figure for figure, _ in measured) / count
    ends = [(figure - ends[0], ends[1] - figure) for figure, ends in measured if ends is not None]
    if len(ends) < count:
        return value, None
    below, above = (math.hypot(*each) / count for each in zip(*ends, strict=True))
    return value, (value - below, value + above)


def least(measured: Iterable[Measured]) -> Measured:
    """Return the least of several figures; its interval goes from the lowest lower end to the lowest upper end."""
    figures, intervals = zip(*measured, strict=True)
    if None in intervals:
        return min(figures), None
    lows, highs = zip(*intervals, strict=True)
    return min(figures), (min(lows), min(highs))


def transform(function: Callable[[float], float], measured: Measured) -> Measured:
    """Return a monotonic function applied to a figure and to its interval."""
    figure, ends = measured
    if ends is None:
        return function(figure), None
    low, high = sorted(map(function, ends))
    return function(figure), (low, high)


def exact(figure: float) -> Measured:
    """Return a figure with an interval of width 0, for counted or planned figures."""
    return figure, (figure, figure)


def redraw_means(repetitions: Sequence[float], draws: int, generator: np.random.Generator) -> Array:
    """Return `draws` random means of a positive figure, given its repetitions, by Student's t of the logarithm.

    Results that depend on many means by no simple formula get their 95 % interval from the percentiles of such draws.
    """
    count = len(repetitions)
    off = np.std(repetitions, ddof=1) / np.mean(repetitions) / math.sqrt(count)
    return np.asarray(np.mean(repetitions) * np.exp(off * generator.standard_t(count - 1, draws)))


def percentiles95(drawn: Array) -> Interval:
    """Return the two values between which 95 % of the drawn values lie."""
    low, high = np.quantile(drawn, [_beyond(), 1 - _beyond()], method="inverted_cdf")  # no means of infinite ones
    return float(low), float(high)


def quantile_of_t(repetitions: int) -> float:
    """Return the half width of a 95 % interval from this many repetitions, in standard errors."""
    return float(scipy.special.stdtrit(repetitions - 1, 1 - _beyond()))


def _effective_iterations(above: Sequence[float], share: float, iterations: int) -> float:
    """Return how many independent iterations determine a share equally well, by the repetitions' scatter `above` it.

    They are no more than all `iterations` (Korn and Graubard 1998), and fewer with few repetitions to take the scatter
    from.
    """
    count = len(above)
    variance = share * (1 - share)
    scatter = max(float(np.var(above, ddof=1)) / count, variance / iterations**2)
    return min(variance / scatter * (quantile_of_t(10**6) / quantile_of_t(count)) ** 2, iterations)


class _Split(NamedTuple):
    """The split of iterations into two groups that explains the largest `share` of their variance.

    `lower` is the share of iterations in the lower group; `low` and `high` are the groups' means.
    """

    share: float
    lower: float
    low: float
    high: float


def _split(iterations: Array) -> _Split:
    """Return the best split of iterations into two groups (Otsu 1979)."""
    ordered = np.sort(iterations)
    count, variance = len(ordered), float(np.var(ordered))
    if not variance > 0:
        return _Split(0.0, 1.0, float(ordered[-1]), float(ordered[-1]))
    below = np.arange(1, count)
    sums = np.cumsum(ordered)
    low, high = sums[:-1] / below, (sums[-1] - sums[:-1]) / (count - below)
    between = below * (count - below) / count**2 * (high - low) ** 2
    best = int(between.argmax())
    return _Split(float(between[best]) / variance, float(below[best]) / count, float(low[best]), float(high[best]))
