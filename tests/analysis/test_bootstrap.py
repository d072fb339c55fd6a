# SPDX-License-Identifier: Apache-2.0
"""Intervals: how often they hold the truth, that they repeat, and when there is none."""

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis.statistics.bootstrap import block_length, interval95, resample, tail_probability

ROUNDS = 250


def medians(samples):
    return np.median(samples[..., 0], axis=1)


def repetitions(generator, count, iterations, *, memory=0.6, between=0.0):
    """Autocorrelated iterations about a true median of 0; each repetition is off by its own amount."""
    noise = generator.standard_normal((count, iterations + 100))
    series = lfilter([1.0], [1.0, -memory], noise, axis=1)[:, 100:]
    return list((series + between * generator.standard_normal((count, 1)))[..., None])


def coverage(interval_of, **kwargs):
    generator = np.random.default_rng(2)
    held = 0
    for _ in range(ROUNDS):
        low, high = interval_of(repetitions(generator, 5, 50, **kwargs))
        held += low <= 0 <= high
    return held / ROUNDS


def ours(data):
    return interval95(resample(data, medians, seed=1, draws=1000), len(data))


def naive(data):
    """What is wrong: all iterations taken as independent."""
    pooled = np.concatenate(data)[:, 0]
    chosen = np.random.default_rng(1).integers(len(pooled), size=(1000, len(pooled)))
    return np.quantile(np.median(pooled[chosen], axis=1), [0.025, 0.975])


@pytest.mark.parametrize("between", [0.0, 0.5, 1.0, 3.0])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(between):
    # Where repetitions hardly differ it is wider than it need be: both levels then show the same noise.
    assert coverage(ours, between=between) >= 0.91


def test_iterations_taken_as_independent_would_promise_too_much():
    assert coverage(naive, between=1.0) < 0.6


def test_blocks_follow_the_cube_root():
    assert [block_length(count) for count in (1, 8, 9, 27, 50, 1000)] == [1, 2, 3, 3, 4, 10]


def test_the_same_seed_gives_the_same_resamples_also_in_pieces(monkeypatch):
    data = repetitions(np.random.default_rng(0), 4, 30)
    once = resample(data, medians, seed=3, draws=50)
    assert np.array_equal(once, resample(data, medians, seed=3, draws=50))
    assert not np.array_equal(once, resample(data, medians, seed=4, draws=50))
    monkeypatch.setattr("analysis.statistics.bootstrap._CHUNK", 500)
    assert resample(data, medians, seed=3, draws=50).shape == (50,)


def test_series_are_resampled_together():
    series = np.random.default_rng(0).standard_normal((4, 20, 1))
    differences = resample([np.hstack([one, one + 7]) for one in series], lambda all_: np.ptp(all_, axis=2), seed=1)
    assert differences == pytest.approx(7)


def test_blocks_keep_neighbours_together():
    counting = [np.arange(27.0)[:, None] for _ in range(4)]
    steps = resample(counting, lambda all_: np.mean(np.diff(all_[..., 0], axis=1) == 1, axis=1), seed=1, draws=200)
    assert steps.mean() == pytest.approx(2 / 3, abs=0.05)


def test_below_four_repetitions_there_is_no_interval():
    assert interval95(np.arange(100.0), 3) is None
    low, high = interval95(np.arange(100.0), 4)
    assert 0 <= low < 1
    assert 98 < high <= 99


def test_few_repetitions_take_percentiles_further_out():
    tails = [tail_probability(count) for count in (4, 5, 10, 1000)]
    assert tails == sorted(tails)
    assert tails[1] == pytest.approx(0.00096, abs=1e-5)
    assert tails[-1] == pytest.approx(0.025, abs=2e-4)


def test_repetitions_of_different_length_are_refused():
    with pytest.raises(ValueError, match="shape"):
        resample([np.zeros((5, 1)), np.zeros((6, 1))], medians, seed=1)
