# SPDX-License-Identifier: Apache-2.0
"""What is tried after what: it follows from the seed and from what was found."""

import pytest
from hypothesis import given, strategies as st

from roundabout.testbeds.lab.calibration.calibration import load_calibration
from roundabout.testbeds.lab.calibration.parameter_search import ParameterSearch
from roundabout.testbeds.lab.calibration.proposals import load_ranges

pytestmark = pytest.mark.unit

KEPT, RANGES = load_calibration(), load_ranges()


def away(point):
    """How far from a place in the cube."""
    return sum((place - 0.7) ** 2 for place in point) ** 0.5


def searched(tries, seed=1, misfit=lambda each: away(each.point)):
    search = ParameterSearch(RANGES, KEPT, tries, seed)
    for each in search:
        each.misfit = misfit(each)
    return search


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_a_search_tries_the_present_values_then_samples_then_variations(tries, seed):
    names = [each.name for each in searched(tries, seed).done]
    assert len(names) == tries
    assert names[0] == "kept"
    samples = min(tries // 2, tries - 1)
    assert all(name.startswith("sample ") for name in names[1 : 1 + samples])
    assert all(name.startswith("variation ") for name in names[1 + samples :])


def test_a_search_follows_from_its_seed():
    one, same, other = (searched(12, seed) for seed in (1, 1, 2))
    assert [each.point for each in one.done] == [each.point for each in same.done]
    assert [each.point for each in one.done[1:]] != [each.point for each in other.done[1:]]


def test_a_search_first_tries_the_present_calibration_unchanged():
    assert searched(1).done[0].calibration is KEPT


def test_variations_are_about_what_fits_best():
    found = searched(60)
    samples = [away(each.point) for each in found.done[:31]]
    variations = [away(each.point) for each in found.done[31:]]
    assert sum(variations) / 29 < 0.8 * sum(samples) / 31
    assert found.ranking[0].misfit == min(each.misfit for each in found.done)


def test_a_search_continues_if_every_try_is_invalid():
    found = searched(6, misfit=lambda each: None)
    assert len(found.done) == 6
    assert found.ranking == []
