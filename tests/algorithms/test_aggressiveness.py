# SPDX-License-Identifier: Apache-2.0
"""F in C beside the published formulas, and what it does to increases and decreases."""

from ctypes import byref, c_uint32 as u32, c_uint64 as u64
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from tests.algorithms.library import LIBRARY, ONE_Q24, SHAPES, Iteration, MltcpParams

pytestmark = pytest.mark.unit

PUBLISHED = {
    "linear": lambda r: 1.75 * r + 0.25,
    "quadratic": lambda r: 1.75 * r**2 + 0.25,
    "reciprocal": lambda r: 1 / (-3.5 * r + 4),
    "decreasing": lambda r: -1.75 * r + 2,
}
RATIOS = st.integers(0, ONE_Q24)
FACTORS = st.integers(ONE_Q24 // 100, 200 * ONE_Q24)


def params(shape: str, slope: float = 1.75, intercept: float = 0.25) -> MltcpParams:
    numbers = {"slope_q24": round(slope * ONE_Q24), "intercept_q24": round(intercept * ONE_Q24)}
    return MltcpParams(shape=SHAPES.index(shape), **numbers)


def F(p: MltcpParams, ratio: int) -> float:  # noqa: N802
    return LIBRARY.aggressiveness(byref(p), ratio) / ONE_Q24


@pytest.mark.parametrize("shape", SHAPES)
@given(ratio=RATIOS)
def test_each_shape_is_the_published_one(shape: str, ratio: int) -> None:
    assert F(params(shape), ratio) == pytest.approx(PUBLISHED[shape](ratio / ONE_Q24), rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@given(slope=st.floats(0, 100), intercept=st.floats(0.01, 100), ratios=st.tuples(RATIOS, RATIOS))
def test_each_shape_is_monotonic_between_its_ends(
    shape: str, slope: float, intercept: float, ratios: tuple[int, int]
) -> None:
    p = params(shape, slope, intercept)
    ends = (F(p, 0), F(p, ONE_Q24))
    assert sorted(ends) == pytest.approx([intercept, intercept + slope], abs=1e-6)
    low, high = (F(p, ratio) for ratio in sorted(ratios))
    if shape == "decreasing":
        low, high = high, low
    assert min(ends) <= low <= high + 1e-6 <= max(ends) + 2e-6


@given(factor=FACTORS, steps=st.lists(st.integers(0, 1000), max_size=100))
def test_nothing_of_an_increase_is_lost_to_rounding(factor: int, steps: list[int]) -> None:
    carried, total = u32(0), 0
    for step in steps:
        total += LIBRARY.aggressiveness_increases(step, u32(factor), byref(carried))
    assert total == sum(steps) * factor // ONE_Q24


@given(factor=FACTORS, before=st.integers(16, 2**40), share=st.floats(0, 1))
def test_a_decrease_is_divided_by_it_and_leaves_an_eighth(factor: int, before: int, share: float) -> None:
    after = round(before * share)
    kept = LIBRARY.aggressiveness_decreases(u64(before), u64(after), u32(factor))
    cut = min((before - after) * ONE_Q24 / factor, before - before // 8)
    assert before - kept == pytest.approx(cut, rel=1e-4, abs=1)


@given(value=st.integers(0, 2**47), factor=st.integers(0, 2**32 - 1))
def test_a_product_is_exact(value: int, factor: int) -> None:
    assert LIBRARY.times(u64(value), u32(factor)) == Fraction(value * factor, ONE_Q24).__floor__()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_job_of_which_nothing_is_known_behaves_as_the_base(shape: str) -> None:
    assert LIBRARY.aggressiveness_now(byref(Iteration(sent=5)), byref(params(shape))) == ONE_Q24
