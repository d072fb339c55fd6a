# SPDX-License-Identifier: Apache-2.0
"""Counters as they misbehave, each distinguished, and never a negative gain."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from roundabout.core.errors import RoundaboutError
from roundabout.store.counter_increments import KINDS, KNOWN, compute_increments

pytestmark = pytest.mark.unit

PERIOD_NS = 10_000_000
MAX_PER_S = 2e9  # packets of the smallest kind at 800 Gbit/s, both directions together
MAX_GAIN = int(MAX_PER_S * PERIOD_NS / 1e9)  # what a period can count

gains = st.lists(st.integers(0, MAX_GAIN), min_size=1, max_size=40)


def sampled(values, width_bits=64, start=0):
    at_ns = start + PERIOD_NS * np.arange(len(values))
    return compute_increments(at_ns, np.array(values, dtype=object), width_bits, most_per_s=MAX_PER_S)


def totals(start, each):
    return [start, *(start + int(total) for total in np.cumsum(np.array(each, dtype=object)))]


@given(start=st.integers(0, 2**62), each=gains)
def test_a_counter_that_counts_is_known_exactly(start, each):
    found = sampled(totals(start, each))
    assert found.gained.tolist() == each
    assert set(found.kind) == {"ok"}
    assert found.total == sum(each)


@given(start=st.integers(0, 2**32 - 1), each=gains)
def test_a_32_bit_counter_wraps_without_loss(start, each):
    values = totals(start, each)
    found = sampled([value % 2**32 for value in values], 32)
    assert found.gained.tolist() == each
    wraps = [value // 2**32 - before // 2**32 for before, value in pairwise(values)]
    assert (found.kind == "wrap").tolist() == [wrap == 1 for wrap in wraps]


@given(
    width_bits=st.sampled_from([32, 64]),
    start=st.integers(0, 2**31),
    each=st.lists(st.integers(0, 1000), min_size=2, max_size=40),
    place=st.floats(0, 1),
    since=st.integers(0, 1000),
)
def test_a_reset_is_no_wrap_and_no_gain(width_bits, start, each, place, since):
    values = totals(start, each)
    at = min(1 + int(place * (len(values) - 1)), len(values) - 1)
    assume(values[at - 1] >= 2 * since + 2)
    after = [since + value - values[at] for value in values[at:]]
    found = sampled(values[:at] + after, width_bits)
    assert found.kind[at - 1] == "reset"
    assert np.isnan(found.gained[at - 1])
    assert found.total == sum(each) - each[at - 1]


@given(start=st.integers(10 * MAX_GAIN, 2**31), fall=st.integers(1, MAX_GAIN), width_bits=st.sampled_from([32, 64]))
def test_a_step_back_is_no_reset(start, fall, width_bits):
    found = sampled([start, start - fall, start - fall + 5], width_bits)
    assert found.kind.tolist() == ["backwards", "ok"]
    assert np.isnan(found.gained[0])
    assert found.gained[1] == 5


@given(each=gains, gone=st.sets(st.integers(0, 40)))
def test_a_counter_that_vanishes_is_unknown_and_not_0(each, gone):
    values = totals(7, each)
    gaps = [None if place in gone else value for place, value in enumerate(values)]
    found = sampled(gaps)
    touched = [a is None or b is None for a, b in pairwise(gaps)]
    assert (found.kind == "gone").tolist() == touched
    assert np.isnan(found.gained).tolist() == touched


def test_a_link_that_was_down_gained_nothing_and_its_interface_was_gone():
    # Sampled as `counters` has it: packets until the link went down, silence, then the interface itself vanished.
    found = sampled([100, 200, 200, 200, None, None, 0, 50])
    assert found.kind.tolist() == ["ok", "ok", "ok", "gone", "gone", "gone", "ok"]
    assert found.gained[:3].tolist() == [100, 0, 0]
    assert found.total == 150


def test_a_narrow_counter_stops_at_its_most():
    found = sampled([65_533, 65_535, 65_535, 3], 16)
    assert found.kind.tolist() == ["full", "full", "reset"]
    assert np.isnan(found.gained).all()


@given(
    values=st.lists(st.one_of(st.none(), st.integers(0, 2**63 - 1)), min_size=1, max_size=30),
    width_bits=st.sampled_from([4, 8, 16, 32, 64]),
)
def test_no_gain_is_ever_negative(values, width_bits):
    found = sampled(values, width_bits)
    assert set(found.kind) <= set(KINDS)
    assert (found.gained[found.known] >= 0).all()
    assert np.isnan(found.gained[~found.known]).all()
    assert len(found.gained) == len(values) - 1


def test_nan_stands_for_null_as_arrow_has_it():
    found = compute_increments(np.array([0, 10, 20]), np.array([1.0, np.nan, 3.0]))
    assert found.kind.tolist() == ["gone", "gone"]
    assert set(KNOWN) < set(KINDS)


@given(each=gains, doubled=st.integers(0, 40))
def test_two_samples_of_one_instant_count_as_any_others(each, doubled):
    values = totals(0, each)
    at_ns = PERIOD_NS * np.arange(len(values))
    after = min(doubled, len(values) - 1)
    found = compute_increments(np.insert(at_ns, after, at_ns[after]), np.array([*values[: after + 1], *values[after:]]))
    assert found.known.all()
    assert found.total == sum(each)


def test_a_clock_that_goes_back_is_one_clear_error():
    with pytest.raises(RoundaboutError, match=r"clock went back by 0\.000005 s after sample 2 of 3"):
        compute_increments(np.array([0, 10_000, 5_000]), np.array([1, 2, 3]))
