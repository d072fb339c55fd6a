# SPDX-License-Identifier: Apache-2.0
"""Intervals for figures made of repetitions of autocorrelated iterations.

Iterations of one repetition depend on each other in unknown ways, but repetitions are independent. So only the scatter
among repetitions shows how far a figure may be off, with Student's t because repetitions are few:

- a median or a mean of all iterations has an interval as wide as the repetitions' own medians or means say;
- a 99th percentile needs more: of 250 iterations two or three lie beyond it. Its interval runs between two of the
  longest iterations, by how many independent iterations the repetitions are worth (Woodruff 1952; Korn and Graubard
  1998, for samples that come in clusters);
- intervals of ratios and averages are combined from the intervals of their parts (MOVER: Zou and Donner 2008).

tests/analysis/reading/test_intervals.py measures and prints how often intervals hold the truth.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Interval = tuple[float, float]
Measured = tuple[float, Interval | None]
"""A figure and its 95 % interval."""

LEAST_REPETITIONS = 4
"""Least number of repetitions for an interval; with fewer it would be a guess."""
LEAST_TAIL = 1000
"""Least iterations, over all repetitions, for a 99th percentile: ten lie beyond it; with fewer it would be a guess."""
TAIL = 0.99
_BEYOND = 0.025
"""On each side of a 95 % interval."""


def estimate(
    repetitions: Sequence[Array], statistic: Callable[[Array], float], *, at_least: float = -math.inf
) -> Measured:
    """Return a statistic, such as a median, of all repetitions together, with an interval by Student's t.

    Each repetition is an array of iterations. The interval does not extend below `at_least`, such as 0 for counts.
    """
    figures = [float(statistic(each)) for each in repetitions]
    return scatter_interval(float(statistic(np.concatenate(repetitions))), figures, at_least)


def stack_to_shortest(repetitions: Sequence[Array]) -> Array:
    """Return series as rows of one array, cut to the shortest, because jobs may depart at different iterations."""
    shortest = min(map(len, repetitions))
    return np.stack([each[:shortest] for each in repetitions])


def mean_of(figures: Sequence[float], *, at_least: float = -math.inf) -> Measured:
    """Return the mean of figures, one for each repetition, with its interval; `at_least` as in `estimate`."""
    return scatter_interval(math.fsum(figures) / len(figures), figures, at_least)


def scatter_interval(figure: float, figures: Sequence[float], at_least: float = -math.inf) -> Measured:
    """Return a figure with the interval that follows from the scatter of the repetitions' own figures.

    An infinite figure has no scatter; its interval begins at the least of the repetitions' figures.
    """
    count = len(figures)
    if count < LEAST_REPETITIONS:
        return figure, None
    if math.isinf(figure):
        return figure, (min(figures), figure)
    off = quantile_of_t(count) * float(np.std(figures, ddof=1)) / math.sqrt(count)
    return figure, (max(figure - off, at_least), figure + off)


def tail_estimate(repetitions: Sequence[Array]) -> Measured | None:
    """Return the 99th percentile of all iterations of all repetitions; None with fewer than `LEAST_TAIL`.

    The interval ends at the longest iteration at most.
    """
    together = np.concatenate(repetitions)
    if len(together) < LEAST_TAIL:
        return None
    figure = float(np.quantile(together, TAIL))
    if len(repetitions) < LEAST_REPETITIONS:
        return figure, None
    beyond, worth = (
        1 - TAIL,
        _effective_iterations([float(np.mean(each > figure)) for each in repetitions], len(together)),
    )
    count = beyond * worth
    shares = scipy.special.betaincinv([count + 1, count], [worth - count, worth - count + 1], [1 - _BEYOND, _BEYOND])
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
    low, high = np.quantile(drawn, [_BEYOND, 1 - _BEYOND], method="inverted_cdf")  # no means of infinite ones
    return float(low), float(high)


def quantile_of_t(repetitions: int) -> float:
    """Return the half width of a 95 % interval from this many repetitions, in standard errors."""
    return float(scipy.special.stdtrit(repetitions - 1, 1 - _BEYOND))


def _effective_iterations(shares: Sequence[float], iterations: int) -> float:
    """Return how many independent iterations determine a share equally well, by the repetitions' scatter.

    Fewer yet with few repetitions to take the scatter from.
    """
    count = len(shares)
    scatter = max(float(np.var(shares, ddof=1)) / count, TAIL * (1 - TAIL) / iterations**2)
    return TAIL * (1 - TAIL) / scatter * (quantile_of_t(10**6) / quantile_of_t(count)) ** 2
