# SPDX-License-Identifier: Apache-2.0
"""Intervals: how often they hold the truth, and when there is none."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import ndtr
from scipy.stats import binomtest, norm

from analysis.expectations.expectations import Limits
from analysis.expectations.verdicts import judge_interval
from analysis.statistics.intervals import (
    MIN_TAIL,
    average,
    estimate,
    exact,
    find_modes,
    least,
    mean_of,
    ratio,
    repeated_looks,
    scatter_interval,
    tail_estimate,
    transform,
)

pytestmark = pytest.mark.unit

LOW, HIGH = 0.93, 0.97
"""What an interval of 95 % may hold the truth in, of `ROUNDS` made-up runs whose iterations remember this much:"""
MEMORY = 0.6
FORGETFUL = 0.89
"""What it holds at least of runs that remember more, whose iterations add next to nothing new: 16 are worth one."""
ROUNDS = 2000

EVEN = "even"
SKEWED = "skewed"
SHAPES = {EVEN: lambda z: z, SKEWED: lambda z: -np.log(np.maximum(1 - ndtr(z), 1e-300)) - 1}
"""Iterations of mean 0 and variance 1, of numbers that are normal."""
MEANS_MS = 10.0


def made_up(rounds, repetitions, iterations, *, memory, between, shape=EVEN, seed=1):
    """Runs of autocorrelated iterations, ms; each repetition is off by its own amount. Shape (rounds, ...)."""
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((rounds * repetitions, iterations + 100))
    series = lfilter([math.sqrt(1 - memory**2)], [1.0, -memory], noise, axis=1)[:, 100:]
    times = SHAPES[shape](series).reshape(rounds, repetitions, iterations)
    return MEANS_MS + times + between * generator.standard_normal((rounds, repetitions, 1))


def truth(statistic, *, between, shape):
    """The statistic of all the iterations that there could be."""
    at = (np.arange(400) + 0.5) / 400
    within, off = SHAPES[shape](norm.ppf((np.arange(20_000) + 0.5) / 20_000)), between * norm.ppf(at)
    return MEANS_MS + statistic((within[:, None] + (off if between else np.zeros(1))).ravel())


def p99(times):
    return np.quantile(times, 0.99)


def coverage(interval_of, true, runs):
    held = [low <= true <= high for low, high in (interval_of(list(run)) for run in runs)]
    return float(np.mean(held))


def of(statistic):
    return tail_interval if statistic is p99 else lambda run: estimate(run, statistic)[1]


def tail_interval(run):
    return tail_estimate(run)[1]


def cell(statistic, size, *, memory, between, shape, rounds=ROUNDS):
    """How often the interval of a figure holds the truth, of runs of so many repetitions and iterations."""
    runs = made_up(rounds, *size, memory=memory, between=between, shape=shape)
    return coverage(of(statistic), truth(statistic, between=between, shape=shape), runs)


def studied(statistic, sizes, memories, high=HIGH):
    """Prints coverage by size of a run, memory, difference between repetitions and shape; fails where it is off."""
    found = {}
    print(f"\n{'repetitions x iterations':>26} {'memory':>7} {'between':>8} {'shape':>7} {'held':>7}")
    for size, memory, between, shape in product(sizes, memories, (0.0, 0.3), SHAPES):
        found[size, memory, between, shape] = held = cell(statistic, size, memory=memory, between=between, shape=shape)
        print(f"{size[0]:>15} x {size[1]:>8} {memory:>7} {between:>8} {shape:>7} {held:>7.1%}")
    assert {key: held for key, held in found.items() if held > high or held < FORGETFUL} == {}
    assert {key: held for key, held in found.items() if held < LOW and key[1] <= MEMORY} == {}


@pytest.mark.proof
@pytest.mark.parametrize("statistic", [np.median, np.mean])
def test_intervals_of_medians_and_means_hold_as_often_as_they_say(statistic):
    studied(statistic, [(4, 16), (4, 50), (10, 16), (10, 50)], (0.0, MEMORY, 0.9))


@pytest.mark.proof
def test_intervals_of_99th_percentiles_hold_as_often_as_they_say():
    # Wider than they need be: repetitions are worth no more than their iterations, however alike they are.
    studied(p99, [(4, 250), (10, 100), (4, 1000), (10, 400)], (0.3, MEMORY, 0.8), high=0.985)


@pytest.mark.proof
def test_intervals_of_speed_ups_hold_as_often_as_they_say():
    for repetitions, memory in product((4, 10), (0.0, 0.6, 0.9)):
        runs = zip(
            *(made_up(ROUNDS, repetitions, 50, memory=memory, between=0.3, seed=seed) for seed in (1, 2)), strict=True
        )
        held = np.mean([low <= 1 <= high for low, high in (speedup(*pair)[1] for pair in runs)])
        print(f"\n{repetitions} repetitions, memory {memory}: {held:.1%}")
        assert LOW <= held <= 0.985  # wider than it need be: each median pays for its few repetitions


def speedup(slow, fast):
    return ratio(estimate(list(slow), np.median), estimate(list(fast), np.median))


@pytest.mark.parametrize(
    ("statistic", "size"), [(np.median, (4, 50)), (np.median, (10, 50)), (p99, (4, 250)), (p99, (10, 100))]
)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(statistic, size):
    assert 0.92 <= cell(statistic, size, memory=MEMORY, between=0.3, shape=SKEWED, rounds=400) <= 0.98


def test_four_unlike_repetitions_give_too_narrow_tail_intervals():
    assert cell(p99, (4, 250), memory=MEMORY, between=2.0, shape=EVEN, rounds=400) < LOW


def test_iterations_taken_as_independent_would_promise_too_much():
    def naive(run):
        pooled = np.concatenate(run)
        off = 1.96 * pooled.std() * math.sqrt(math.pi / 2 / len(pooled))
        return np.median(pooled) - off, np.median(pooled) + off

    runs = made_up(400, 5, 50, memory=0.6, between=1.0)
    assert coverage(naive, MEANS_MS, runs) < 0.6


def test_below_four_repetitions_there_is_no_interval():
    run = list(made_up(1, 4, MIN_TAIL, memory=0.6, between=0.1)[0])
    for found in (estimate(run[:3], np.median), tail_estimate(run[:3]), mean_of([1.0, 2.0, 3.0])):
        assert found[1] is None
    for found in (estimate(run, np.median), tail_estimate(run), mean_of([1.0, 2.0, 3.0, 4.0])):
        assert found[1][0] < found[0] < found[1][1]


@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3).map(np.array), min_size=4, max_size=6))
def test_an_interval_of_counts_has_no_negative_end(counts):
    for figure, (low, high) in (
        estimate(counts, np.mean, at_least=0),
        mean_of([each[0] for each in counts], at_least=0),
    ):
        assert 0 <= low <= figure <= high


def test_an_infinite_mean_has_only_a_lower_bound():
    assert mean_of([3.0, math.inf, 4.0, 5.0]) == (math.inf, (3.0, math.inf))
    assert mean_of([3.0, math.inf, 4.0]) == (math.inf, None)


@given(st.lists(st.floats(0, 10), min_size=3, max_size=5), st.floats(0, 10))
def test_an_infinite_repetition_of_a_finite_figure_leaves_the_upper_end_open(figures, pooled):
    figure, (low, high) = scatter_interval(pooled, [*figures, math.inf])
    assert figure == pooled
    assert low == min(pooled, *figures)
    assert high == math.inf


def test_fewer_than_1000_iterations_have_no_p99():
    times = np.arange(MIN_TAIL + 0.0)
    assert tail_estimate(list(times[:-4].reshape(4, -1))) is None
    assert tail_estimate(list(times.reshape(4, -1)))[0] == pytest.approx(np.quantile(times, 0.99))


@settings(max_examples=20)
@given(st.integers(4, 10), st.integers(0, 10), st.integers(250, 400), st.integers(0, 2**32 - 1))
def test_repetitions_are_worth_no_more_than_their_iterations(repetitions, unlike, iterations, seed):
    # Binomial intervals by scipy, of as many independent iterations, bound those of the tail from within.
    run = [np.arange(iterations) + 0.0 for _ in range(repetitions)]
    run[0] += unlike * np.random.default_rng(seed).random(iterations)
    _figure, (low, high) = tail_estimate(run)
    together = np.sort(np.concatenate(run))
    shares = binomtest(round(0.01 * len(together)), len(together)).proportion_ci()
    slack = 1.0 + unlike  # the count that lies beyond is not whole
    assert low <= np.quantile(together, 1 - shares.high, method="weibull") + slack
    assert high >= np.quantile(together, 1 - shares.low, method="weibull") - slack


def test_the_interval_of_a_tail_ends_at_the_longest_iteration():
    run = [np.ones(250), np.ones(250), np.ones(250), np.concatenate([np.ones(230), np.arange(20.0)])]
    assert tail_estimate(run)[1][1] == 19


MODES_MS = 120.0, 155.0
"""Two jobs that meet every second time (mixes of periods 1:2)."""


def two_modes(rounds, repetitions, iterations, *, memory, lower, deviations, seed=1):
    """Runs of autocorrelated iterations of two modes, ms; a share `lower` is in the lower one. Shape (rounds, ...)."""
    low, high = MODES_MS
    hidden = made_up(rounds, repetitions, iterations, memory=memory, between=0.0, seed=seed) - MEANS_MS
    within = np.random.default_rng(seed).standard_normal(hidden.shape) * (high - low) / deviations
    return np.where(hidden > norm.ppf(lower), high, low) + within


def true_median(*, lower, deviations):
    low, high = MODES_MS
    off = (high - low) / deviations

    def share_beyond(ms):
        return lower * norm.cdf(ms, low, off) + (1 - lower) * norm.cdf(ms, high, off) - 0.5

    return brentq(share_beyond, low - 5 * off, high + 5 * off)


def median_interval(run):
    return estimate(run, np.median)[1]


@pytest.mark.proof
def test_intervals_of_two_modes_hold_as_often_as_they_say():
    """Print coverage of medians, means, p99 and ratios of medians by size, memory, weight and distance of modes."""
    found = {}
    print(f"\n{'size':>9} {'memory':>6} {'lower':>5} {'deviations':>10} {'median':>7} {'mean':>6} {'ratio':>6}")
    sizes = [(4, 16), (4, 50), (5, 50), (10, 50)]
    for size, memory, lower, deviations in product(sizes, (0.0, MEMORY, 0.9), (0.45, 0.35), (3, 4, 6, 14)):
        kind = {"memory": memory, "lower": lower, "deviations": deviations}
        runs, others = (two_modes(600, *size, **kind, seed=seed) for seed in (1, 2))
        median = true_median(lower=lower, deviations=deviations)
        mean = lower * MODES_MS[0] + (1 - lower) * MODES_MS[1]
        held = (
            coverage(median_interval, median, runs),
            coverage(of(np.mean), mean, runs),
            np.mean([low <= 1 <= high for low, high in (speedup(*pair)[1] for pair in zip(runs, others, strict=True))]),
        )
        print(
            f"{size[0]:>3} x {size[1]:>3} {memory:>6} {lower:>5} {deviations:>10}", *(f"{each:>6.1%}" for each in held)
        )
        found[size, memory, lower, deviations] = min(held)
    assert {key: held for key, held in found.items() if held < 0.9} == {}


@pytest.mark.parametrize("lower", [0.45, 0.5, 0.65])
@pytest.mark.parametrize("size", [(4, 50), (5, 50)])
def test_intervals_of_medians_hold_between_two_modes(lower, size):
    runs = two_modes(150, *size, memory=0.6, lower=lower, deviations=14)
    assert coverage(median_interval, true_median(lower=lower, deviations=14), runs) >= 0.93


@pytest.mark.parametrize(("lower", "deviations"), [(0.45, 6), (0.3, 8), (0.65, 14), (0.5, 100)])
def test_two_modes_are_found(lower, deviations):
    (run,) = two_modes(1, 4, 50, memory=0.6, lower=lower, deviations=deviations)
    assert find_modes(np.concatenate(run)) == pytest.approx(MODES_MS, rel=0.03)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("between", [0.0, 0.3])
def test_one_mode_is_not_taken_for_two(shape, between):
    runs = made_up(100, 4, 50, memory=0.6, between=between, shape=shape)
    assert not any(find_modes(np.concatenate(run)) for run in runs)


@pytest.mark.parametrize(
    "times", [np.full(20, 230.0), np.tile([235.0, 235.5], 10), np.array([100.0] * 19 + [200.0]), np.array([230.0])]
)
def test_equal_or_near_iterations_and_one_outlier_are_one_mode(times):
    assert find_modes(times) is None


FIGURES = st.floats(0.1, 10)
MEASURED = st.tuples(FIGURES, FIGURES, FIGURES).map(sorted).map(lambda three: (three[1], (three[0], three[2])))


@given(st.lists(MEASURED, min_size=2, max_size=4))
def test_combined_intervals_are_not_narrower_than_their_parts_allow(measured):
    one, other = measured[:2]
    value, (low, high) = ratio(one, other)
    assert value == pytest.approx(one[0] / other[0])
    assert one[1][0] / other[1][1] <= low * (1 + 1e-9)
    assert high <= one[1][1] / other[1][0] * (1 + 1e-9)
    assert low <= value * (1 + 1e-9)
    mean, ends = average(measured)
    assert np.mean([ends[0] for _, ends in measured]) <= ends[0] + 1e-9
    assert ends[0] - 1e-9 <= mean <= ends[1] + 1e-9
    assert least(measured)[0] == min(figure for figure, _ in measured)


def test_a_ratio_with_something_exact_is_as_sure_as_the_other():
    assert ratio((4.0, (2.0, 6.0)), exact(2.0))[1] == pytest.approx((1.0, 3.0))
    assert average([(4.0, (2.0, 6.0)), exact(2.0)]) == (3.0, (2.0, 4.0))
    assert transform(lambda time: 12 / time, (4.0, (2.0, 6.0))) == (3.0, (2.0, 6.0))


def test_a_ratio_over_an_interval_around_0_has_no_interval():
    assert ratio((4.0, (2.0, 6.0)), (1.0, (-1.0, 3.0))) == (4.0, None)


def test_a_combination_has_no_interval_if_one_part_has_none():
    unsure = (1.0, None)
    for found in (ratio(unsure, (1.0, (1.0, 1.0))), average([unsure, exact(1.0)]), least([unsure, exact(2.0)])):
        assert found == (1.0, None)


LOOKS = 4, 8, 16, 32
"""Repetitions at each look at a run until decided."""


def share_decided(interval_of, runs, looks):
    """The share of runs on the edge of what is expected that are decided at any look, which is wrong either way."""
    with repeated_looks(looks):
        decided = [
            any(judge_interval(interval_of(run[:size]), Limits(at_most=MEANS_MS)) != "inconclusive" for size in LOOKS)
            for run in runs
        ]
    return float(np.mean(decided))


@pytest.mark.parametrize("shape", SHAPES)
def test_looks_decide_wrongly_in_5_percent_of_runs_only_with_wider_intervals(shape):
    runs = made_up(2000, LOOKS[-1], 20, memory=MEMORY, between=0.3, shape=shape)
    assert share_decided(lambda run: estimate(run, np.mean)[1], runs, looks=1) > 0.08
    assert share_decided(lambda run: estimate(run, np.mean)[1], runs, looks=len(LOOKS)) <= 0.05


@pytest.mark.proof
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("statistic", [np.median, np.mean, p99])
def test_intervals_hold_at_all_looks_together(statistic, shape):
    runs = made_up(1000, LOOKS[-1], 250 if statistic is p99 else 50, memory=MEMORY, between=0.3, shape=shape)
    true = truth(statistic, between=0.3, shape=shape)
    shares = []
    for looks in (1, len(LOOKS)):
        with repeated_looks(looks):
            held = [
                all(low <= true <= high for low, high in (of(statistic)(list(run[:size])) for size in LOOKS))
                for run in runs
            ]
        shares.append(float(np.mean(held)))
    print(f"\n{statistic.__name__}, {shape}: {shares[0]:.1%} without the correction, {shares[1]:.1%} with it")
    assert shares[0] < LOW
    assert shares[1] >= LOW


@given(st.lists(st.floats(1, 100), min_size=4, max_size=8, unique=True), st.integers(2, 4))
def test_more_looks_give_wider_intervals_of_the_same_figure(figures, looks):
    once, (low, high) = mean_of(figures)
    with repeated_looks(looks):
        repeated, (lower, higher) = mean_of(figures)
    assert repeated == once
    assert lower < low
    assert high < higher
    assert mean_of(figures) == (once, (low, high))
