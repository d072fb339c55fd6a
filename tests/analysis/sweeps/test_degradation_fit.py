# SPDX-License-Identifier: Apache-2.0
"""Fits find known curves, choices prefer the right one, predictions hold, and what cannot be fitted is refused."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from analysis.papers.salamy import FITS
from analysis.statistics.degradation.fit import band_s, fit_model, predict, r_squared
from analysis.statistics.degradation.model import hyperbolic_load, iteration_time_s
from analysis.statistics.degradation.model_choice import Candidate, candidates, choose, left_out_miss
from analysis.statistics.degradation.sweep import DegradationError, Level, Sweep

pytestmark = pytest.mark.unit

LOADS_GBPS = np.linspace(0, 20, 12)
VGG = (0.254, 10.75, 1.0)


def swept(means_s, loads_gbps=LOADS_GBPS, link_gbps=25.0):
    """A sweep with these mean times; shape (levels,), or (levels, repetitions)."""
    rows = np.asarray(means_s).reshape(len(loads_gbps), -1)
    pairs = zip(loads_gbps, rows, strict=True)
    levels = tuple(Level(float(load), tuple(np.array([mean]) for mean in row)) for load, row in pairs)
    return Sweep(levels, link_gbps)


def noisy(curve, repetitions, generator, *, quiet=0.0005, loud=0.08):
    """Repetitions' means about a curve, scattered the more the higher the load, as in section 4: 0.05 % to 8 %."""
    spread = quiet + (loud - quiet) * (LOADS_GBPS / LOADS_GBPS[-1])[:, None] ** 3
    return curve[:, None] * np.exp(spread * generator.standard_normal((len(LOADS_GBPS), repetitions)))


def true(a_s, b, n):
    return iteration_time_s(LOADS_GBPS, a_s, b, n, 25.0)


# --- known curves ----------------------------------------------------------------------------------------------------

curves = st.tuples(st.floats(0.05, 2), st.floats(0.5, 8), st.floats(0.3, 2.5))


@given(curves)
@settings(max_examples=30)
def test_a_curve_without_noise_is_found(curve):
    a_s, strength, n = curve
    b = strength * 5**n / 4  # so that the top level is slowed down by a factor of up to e^2
    found = fit_model(swept(true(a_s, b, n)), n=None, capacity_gbps=25.0)
    assert (found.a_s.value, found.b.value, found.n.value) == pytest.approx((a_s, b, n), rel=1e-3)
    assert found.capacity_gbps.value == 25.0
    assert found.capacity_gbps.ci95 is None
    assert found.r_squared.log == pytest.approx(1)


@given(st.sampled_from([0.5, 1.0, 2.0]), st.floats(21, 40))
@settings(max_examples=20)
def test_the_capacity_is_found_too(n, capacity_gbps):
    times_s = iteration_time_s(LOADS_GBPS, 0.3, 2 * (capacity_gbps - 20) ** n, n, capacity_gbps)
    found = fit_model(swept(times_s), n=n, capacity_gbps=None)
    assert found.capacity_gbps.value == pytest.approx(capacity_gbps, rel=1e-3)


@given(st.lists(st.floats(0.1, 10), min_size=12, max_size=12), st.sampled_from([0.5, 1.0, None]))
@settings(max_examples=40)
def test_an_interval_holds_its_estimate_whatever_the_times(times_s, n):
    assume(np.ptp(np.log(times_s)) > 0)
    found = fit_model(swept(times_s), n=n, capacity_gbps=25.0)
    fitted = [each for each in (found.a_s, found.b, found.n) if each.ci95 is not None]
    assert len(fitted) == 2 + (n is None)
    for each in fitted:
        assert each.ci95[0] <= each.value * (1 + 1e-9) + 1e-9
        assert each.ci95[1] >= each.value * (1 - 1e-9) - 1e-9


@given(st.floats(0.01, 100))
@settings(max_examples=20)
def test_the_unit_of_time_scales_a_alone(unit):
    generator = np.random.default_rng(3)
    times_s = noisy(true(*VGG), 5, generator)
    one, other = (fit_model(swept(times_s * factor), n=None, capacity_gbps=25.0) for factor in (1.0, unit))
    assert other.a_s.value == pytest.approx(unit * one.a_s.value, rel=1e-3)
    assert other.b.ci95 == pytest.approx(one.b.ci95, rel=1e-2)


def test_least_squares_are_those_of_numpy():
    times_s = noisy(true(*VGG), 1, np.random.default_rng(5))[:, 0]
    slope, intercept = np.polyfit(1 / (25 - LOADS_GBPS), np.log(times_s), 1)
    found = fit_model(swept(times_s), n=1.0, capacity_gbps=25.0)
    assert (found.b.value, found.a_s.value) == pytest.approx((slope, math.exp(intercept)))


def test_an_unbounded_coefficient_has_an_open_interval():
    power_law = 800e-3 * 8 / (25 - LOADS_GBPS)  # what a saturated link gives: the limit of n towards 0
    found = fit_model(
        swept(power_law * np.exp(0.01 * np.random.default_rng(1).standard_normal(12))), n=None, capacity_gbps=25.0
    )
    assert found.n.ci95[0] == 0
    assert found.a_s.ci95[0] == 0
    assert found.b.ci95[1] == math.inf
    assert found.r_squared.log > 0.99


def test_equation_3_2():
    assert hyperbolic_load(np.array([0.0, 12.5, 20.0]), 25.0) == pytest.approx([1, 2, 5])


# --- intervals -------------------------------------------------------------------------------------------------------


def covered(curve, repetitions, draws, *, free):
    """How often each of A, B and n lies in its own interval."""
    generator = np.random.default_rng(7)
    held = np.zeros(3)
    for _ in range(draws):
        found = fit_model(
            swept(noisy(true(*curve), repetitions, generator)), n=None if free else curve[2], capacity_gbps=25.0
        )
        pairs = zip((found.a_s, found.b, found.n), curve, strict=True)
        held += [each.ci95 is None or each.ci95[0] <= value <= each.ci95[1] for each, value in pairs]
    return held / draws


@pytest.mark.proof
def test_intervals_cover_coefficients_if_scatter_grows_with_the_load():
    assert covered(VGG, 5, 1000, free=True).min() >= 0.93


@pytest.mark.proof
def test_intervals_cover_coefficients_with_n_fixed_and_no_repetitions():
    assert covered((0.200, 7.281, 0.5), 1, 1000, free=False).min() >= 0.93


def chosen(draws, quiet=0.0005, loud=0.1):
    """What is chosen for sweeps of the same curve, which scatter so much without load and at the top."""
    generator = np.random.default_rng(5)
    return [choose(swept(noisy(true(*VGG), 5, generator, quiet=quiet, loud=loud))).fit for _ in range(draws)]


def held(estimate, value):
    low, high = estimate.ci95 or (estimate.value, estimate.value)
    return low <= value <= high


@pytest.mark.proof
def test_intervals_of_a_chosen_model_hold_that_another_might_have_been():
    found = chosen(20)
    assert sum(each.n.value == VGG[2] and each.capacity_gbps.value == 25 for each in found) < 15
    for name, value in (("a_s", VGG[0]), ("b", VGG[1]), ("n", VGG[2]), ("capacity_gbps", 25.0)):
        assert sum(held(getattr(each, name), value) for each in found) >= 18
    alone = [fit_model(each.sweep, n=each.n.value, capacity_gbps=each.capacity_gbps.value) for each in found]
    assert sum(held(each.b, VGG[1]) for each in alone) < 18  # taking the choice for given promises too much


@pytest.mark.proof
def test_intervals_of_a_chosen_model_hold_as_often_as_they_say():
    found = chosen(300)
    for name, value in (("a_s", VGG[0]), ("b", VGG[1]), ("n", VGG[2]), ("capacity_gbps", 25.0)):
        share = sum(held(getattr(each, name), value) for each in found) / len(found)
        print(f"{name}: {share:.1%}")
        assert share >= 0.93


def test_the_same_model_is_chosen_if_levels_hardly_scatter():
    (found,) = chosen(1, quiet=1e-4, loud=1e-4)
    assert np.ptp(found.n.ci95) < 0.01
    assert found.capacity_gbps.ci95 is None


def test_without_repetitions_to_draw_from_a_choice_is_taken_for_given():
    found = choose(swept(true(*VGG)))
    assert (found.shares, found.fit.redrawn, found.fit.n.ci95) == (None, None, None)


# --- predictions -----------------------------------------------------------------------------------------------------


def test_a_prediction_holds_what_is_then_measured():
    generator = np.random.default_rng(11)
    inside = 0
    for _ in range(300):
        found = fit_model(swept(noisy(true(*VGG), 5, generator, quiet=0.03, loud=0.03)), n=1.0, capacity_gbps=25.0)
        later_s = iteration_time_s(np.array(17.0), *VGG, 25.0) * np.exp(0.03 * generator.standard_normal(5)).mean()
        low, high = predict(found, 17.0).ci95
        inside += low <= later_s <= high
    assert inside / 300 >= 0.93


def test_a_prediction_says_when_it_extrapolates_and_is_then_less_sure():
    found = fit_model(swept(noisy(true(*VGG), 5, np.random.default_rng(2))), n=None, capacity_gbps=25.0)
    inside, beyond = predict(found, 15.0), predict(found, 23.0)
    assert not inside.extrapolates
    assert beyond.extrapolates
    assert inside.time_s == pytest.approx(0.744, rel=0.05)
    assert beyond.ci95[1] / beyond.ci95[0] > inside.ci95[1] / inside.ci95[0]


def test_a_prediction_at_a_plausible_capacity_has_no_upper_bound():
    found = fit_model(swept(noisy(true(*VGG), 5, np.random.default_rng(2))), n=1.0, capacity_gbps=None)
    least = found.capacity_gbps.ci95[0]
    assert predict(found, (least + found.capacity_gbps.value) / 2).ci95[1] == math.inf


def test_a_prediction_just_below_the_capacity_is_infinite():
    found = fit_model(swept(noisy(true(*VGG), 5, np.random.default_rng(2))), n=None, capacity_gbps=25.0)
    assert predict(found, 24.999).time_s == math.inf


@pytest.mark.parametrize("load_gbps", [-1.0, 25.0, 30.0])
def test_a_prediction_outside_0_to_capacity_is_refused(load_gbps):
    found = fit_model(swept(true(*VGG)), n=1.0, capacity_gbps=25.0)
    with pytest.raises(DegradationError, match="expected one from 0 to below the model's C = 25"):
        predict(found, load_gbps)


def test_the_band_encloses_the_curve():
    found = fit_model(swept(noisy(true(*VGG), 5, np.random.default_rng(2))), n=None, capacity_gbps=25.0)
    along = np.linspace(0, 22, 30)
    low_s, high_s = band_s(found, along)
    assert (low_s < found.times_s(along)).all()
    assert (found.times_s(along) < high_s).all()


# --- choice ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0.5, 1.0, 2.0])
def test_the_right_exponent_is_chosen(n):
    printed = next(each for each in FITS if each.n == n)
    noise = np.exp(0.002 * np.random.default_rng(1).standard_normal((12, 5)))
    sweep = swept(true(printed.a_s, printed.b, n)[:, None] * noise)
    held = [each for each in candidates(25.0) if each.n is not None and each.capacity_gbps is not None]
    assert choose(sweep, held).fit.n.value == n


def test_misses_are_ranked_and_the_best_is_fitted():
    choice = choose(swept(noisy(true(*VGG), 5, np.random.default_rng(2))))
    assert list(choice.misses.values()) == sorted(choice.misses.values())
    assert len(choice.misses) == 7
    assert choice.fit.r_squared.log > 0.99


def test_the_misfit_is_the_error_of_left_out_levels():
    sweep = swept(noisy(true(*VGG), 1, np.random.default_rng(2)))
    errors = []
    for left in range(12):
        others = Sweep(tuple(np.delete(np.array(sweep.levels, dtype=object), left)), 25.0)
        predicted_s = fit_model(others, n=1.0, capacity_gbps=25.0).times_s(sweep.loads_gbps[left])
        errors.append(np.log(sweep.means_s[left] / predicted_s))
    expected = np.expm1(np.sqrt(np.mean(np.square(errors))))
    assert left_out_miss(sweep, Candidate(1.0, 25.0)) == pytest.approx(expected)


def test_an_overflowing_misfit_is_infinite_without_a_warning():
    sweep = swept([1, 1.2, 1.6, 2.5, 3.0], loads_gbps=[0, 5, 10, 15, 24], link_gbps=24.001)
    assert left_out_miss(sweep, Candidate(2.0, 24.001)) == math.inf


def test_r_squared_names_its_domain():
    times_s = true(*VGG)
    off = times_s * np.where(LOADS_GBPS > 19, 1.3, 1.0)
    quality = r_squared(off, times_s)
    assert quality.linear < quality.log < 1


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "capacity_gbps", "needed"), [(1.0, 25.0, 4), (None, 25.0, 5), (1.0, None, 5), (None, None, 6)]
)
def test_a_fit_of_too_few_levels_is_refused(n, capacity_gbps, needed):
    few = swept(true(*VGG)[: needed - 1], LOADS_GBPS[: needed - 1])
    with pytest.raises(DegradationError, match=f"found {needed - 1} levels, expected at least {needed}"):
        fit_model(few, n=n, capacity_gbps=capacity_gbps)
    fit_model(swept(true(*VGG)[:needed], LOADS_GBPS[:needed]), n=n, capacity_gbps=capacity_gbps)


def test_a_load_at_the_capacity():
    with pytest.raises(DegradationError, match="found a load of 20 Gbit/s, expected loads below C = 20"):
        fit_model(swept(true(*VGG)), n=1.0, capacity_gbps=20.0)


def test_times_that_do_not_differ():
    with pytest.raises(DegradationError, match="found 0.4 s at every level, expected times that differ"):
        fit_model(swept(np.full(12, 0.4)), n=1.0, capacity_gbps=25.0)


def test_an_exponent_that_is_none():
    with pytest.raises(DegradationError, match="found n = 0"):
        fit_model(swept(true(*VGG)), n=0.0, capacity_gbps=25.0)


@pytest.mark.parametrize("wrong_s", [0.0, -0.1, math.nan, math.inf])
def test_times_that_are_none(wrong_s):
    times_s = true(*VGG)
    times_s[3] = wrong_s
    with pytest.raises(DegradationError, match="not a positive number at 5.45"):
        swept(times_s)


def test_loads_that_no_link_carries():
    with pytest.raises(DegradationError, match="found a load of 25 Gbit/s, expected one from 0 to below the link's 25"):
        swept([1.0, 2.0], [0.0, 25.0])
    with pytest.raises(DegradationError, match="found 4 Gbit/s after 4"):
        swept([1.0, 2.0], [4.0, 4.0])


def test_levels_without_iterations():
    for repetitions in ((), (np.array([]),)):
        with pytest.raises(DegradationError, match="found no iteration in a repetition at 3 Gbit/s"):
            Sweep((Level(3.0, repetitions),), 25.0)
