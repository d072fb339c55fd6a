# SPDX-License-Identifier: Apache-2.0
"""The number of repetitions that would decide a verdict, compared with intervals of that many."""

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, strategies as st

from analysis.expectations.expectations import Limits
from analysis.expectations.repetition_needs import describe_need, repetitions_needed
from analysis.expectations.verdicts import Part, judge_interval
from analysis.statistics.intervals import quantile_of_t
from roundabout.spec.experiment import MAX_REPETITIONS

pytestmark = pytest.mark.unit

DONE = 4
NEVER = "undecidable by repetitions"


def part(value, off, name="a", **limits):
    """An inconclusive figure with an interval of half width `off`."""
    return Part(name, value, (value - off, value + off), "inconclusive", **limits)


def with_repetitions(value, deviation, repetitions):
    off = quantile_of_t(repetitions) * deviation / math.sqrt(repetitions)
    return value - off, value + off


@given(value=st.floats(-2, 2), low=st.floats(-1, 0), high=st.floats(0.1, 1), deviation=st.floats(0.05, 5))
def test_the_estimate_is_the_least_number_that_decides_if_the_figure_stays(value, low, high, deviation):
    limits, ends = Limits(low, high), with_repetitions(value, deviation, DONE)
    assume(judge_interval(ends, limits) == "inconclusive")
    needed = repetitions_needed([Part("a", value, ends, "inconclusive", at_least=low, at_most=high)], DONE)
    if needed <= MAX_REPETITIONS:
        assert judge_interval(with_repetitions(value, deviation * (1 - 1e-9), needed), limits) != "inconclusive"
    fewer = min(needed, MAX_REPETITIONS + 1) - 1
    assert judge_interval(with_repetitions(value, deviation * (1 + 1e-9), fewer), limits) == "inconclusive"


def test_repetitions_do_not_narrow_an_interval_of_draws():
    assert describe_need(repetitions_needed([part(1.1, 0.3, at_most=1.0)], 1)) == NEVER


def test_one_part_that_fails_is_enough():
    outside, inside = part(1.2, 0.3, at_most=1.0), part(0.99, 0.3, "b", at_most=1.0)
    assert repetitions_needed([outside, inside], DONE) == repetitions_needed([outside], DONE) == 6
    assert repetitions_needed([part(0.8, 0.3, at_most=1.0), inside], DONE) == repetitions_needed([inside], DONE) > 100


def test_a_paper_figure_has_the_edges_of_its_tolerance():
    near = part(1.1, 0.3, paper=1.0, tolerance=0.2)
    assert repetitions_needed([near], DONE) == repetitions_needed([part(1.1, 0.3, at_least=0.8, at_most=1.2)], DONE)


@pytest.mark.parametrize(("second", "fails"), [(1.2, False), (0.8, True)])
def test_an_order_is_decided_when_both_intervals_are_apart(second, fails):
    lower, upper = replace(part(1.0, 0.2), verdict="pass"), part(second, 0.2, "b")
    assert repetitions_needed([lower, upper], DONE) == repetitions_needed([part(0.8, 0.4, at_most=1.0)], DONE)
    open_one = part(0.999, 0.2, "c", at_most=1.0)
    assert (repetitions_needed([lower, upper, open_one], DONE) < 100) is fails


@pytest.mark.parametrize(
    ("figure", "done", "reason"),
    [
        (Part("a", 1.0, None, "inconclusive", at_most=2.0), 3, "too few repetitions: a 95 % interval takes 4"),
        (Part("a", 1.0, None, "inconclusive", at_most=2.0), 4, NEVER),
        (Part("a", None, None, "inconclusive", at_most=2.0), 8, NEVER),
        (part(0.8, 0.3, at_most=1.0), 4, "too few repetitions: about 6 would decide"),
        (part(1.0, 0.3, at_most=1.0), 4, "too few repetitions: more than 1000 would decide"),
    ],
)
def test_too_few_repetitions_differ_from_none_that_decide(figure, done, reason):
    assert describe_need(repetitions_needed([figure], done)) == reason


def test_equal_exact_figures_have_no_order():
    equal = [replace(part(1.0, 0.0), verdict="pass"), part(1.0, 0.0, "b")]
    assert describe_need(repetitions_needed(equal, 8)) == NEVER
