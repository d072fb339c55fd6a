# SPDX-License-Identifier: Apache-2.0
"""What is tried is within its ranges, leaves T its effect, and follows from a seed."""

import pytest
import yaml
from hypothesis import given, strategies as st

from roundabout.spec import SpecError
from roundabout.testbeds.lab.calibration.calibration import Derivation, load_calibration
from roundabout.testbeds.lab.calibration.proposals import DEFAULT, Range, latin_hypercube, load_ranges, vary_best

pytestmark = pytest.mark.unit

RANGES, KEPT = load_ranges(), load_calibration()
SIDES = len(RANGES.names)
PLACES = st.floats(0, 1)
POINTS = st.tuples(*[PLACES] * SIDES)
SEEDS = st.integers(0, 2**32)


def inside(calibration):
    """Whether all values are within their ranges."""
    values = {**calibration.transports["dcqcn"], "timer_scale": calibration.timer_scale}
    values["cnp_gap"] = values["cnp_gap_us"] / (RANGES.of_T_us * calibration.timer_scale)
    values["kmin_bytes"] = calibration.ecn.kmin_bytes
    values["kmax_over_kmin"] = calibration.ecn.kmax_bytes / calibration.ecn.kmin_bytes
    ends = ((getattr(RANGES, name), values[name]) for name in RANGES.names)
    return all(each.least * 0.99 <= value <= each.most * 1.01 for each, value in ends)


@given(POINTS)
def test_every_proposal_is_within_ranges_and_its_cnp_gap_is_below_t(point):
    found = RANGES.calibration(point, KEPT)
    assert inside(found)
    assert found.transports["dcqcn"]["cnp_gap_us"] < 100 * found.timer_scale < 125 * found.timer_scale
    assert isinstance(found.transports["dcqcn"]["F"], int)
    assert found.ecn.kmin_bytes <= found.ecn.kmax_bytes
    assert (found.version, found.scale, found.queue_bytes) == (KEPT.version, KEPT.scale, KEPT.queue_bytes)
    assert found.transports["dcqcn"]["R_min_mbps"] == KEPT.transports["dcqcn"]["R_min_mbps"]


@given(POINTS)
def test_a_point_is_found_again_by_what_it_gave(point):
    found = RANGES.calibration(point, KEPT)
    again = RANGES.calibration(RANGES.place(found), KEPT)
    assert again.timer_scale == pytest.approx(found.timer_scale, rel=0.02)
    assert again.transports["dcqcn"] == pytest.approx(found.transports["dcqcn"], rel=0.02)
    assert again.ecn.kmin_bytes == pytest.approx(found.ecn.kmin_bytes, rel=0.02)


def test_present_values_outside_the_ranges_are_clipped():
    values = {**KEPT.transports["dcqcn"], "cnp_gap_us": 0.95 * 100 * KEPT.timer_scale}
    point = RANGES.place(KEPT.model_copy(update={"transports": {"dcqcn": values}}))
    assert all(0 <= place <= 1 for place in point)
    assert point[RANGES.names.index("cnp_gap")] == 1


@given(st.integers(1, 40), SEEDS)
def test_latin_hypercube_samples_cover_each_side_and_follow_the_seed(count, seed):
    points = latin_hypercube(count, SIDES, seed)
    assert points == latin_hypercube(count, SIDES, seed)
    assert all(0 <= place <= 1 for point in points for place in point)
    for side in zip(*points, strict=True):
        assert sorted(min(int(place * count), count - 1) for place in side) == list(range(count))


@given(st.lists(POINTS, min_size=1, max_size=5), st.integers(0, 30), SEEDS)
def test_variations_are_in_the_cube_and_follow_from_the_seed(best, number, seed):
    point = vary_best(best, number, 31, seed)
    assert point == vary_best(best, number, 31, seed)
    assert all(0 <= place <= 1 for place in point)
    assert inside(RANGES.calibration(point, KEPT))


def test_variations_come_nearer_and_are_not_all_alike():
    centre = (0.5,) * SIDES
    points = [vary_best([centre], number, 100, 1) for number in range(100)]
    assert len(set(points)) == 100

    def off(some):
        return sum(abs(place - 0.5) for point in some for place in point)

    assert off(points[:20]) > 1.5 * off(points[-20:])


def test_whole_numbers_get_equal_parts_of_a_range():
    stages = Range(least=1, most=5, whole=True)
    assert {stages.at(place / 1000) for place in range(1001)} == {1, 2, 3, 4, 5}
    assert all(stages.at(stages.place(value)) == value for value in (1, 2, 3, 4, 5))


def test_a_proposal_has_no_derivation():
    derived = Derivation(run="r", hash="h", misfit=1, targets={})
    kept = KEPT.model_copy(update={"derived_from": derived})
    assert RANGES.calibration((0.5,) * SIDES, kept).derived_from is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"g": {"least": 2, "most": 1}}, "found a mapping of 2, expected least at most as large as most, which is 1"),
        ({"cnp_gap": {"least": 0.5, "most": 1.2}}, "expected cnp_gap below 1"),
        ({"surprise": 1}, "the unknown field 'surprise'"),
    ],
)
def test_wrong_ranges_are_named(tmp_path, change, message):
    path = tmp_path / "ranges.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(DEFAULT.read_text()), **change}))
    with pytest.raises(SpecError, match=message) as caught:
        load_ranges(path)
    assert str(path) in caught.value.message
