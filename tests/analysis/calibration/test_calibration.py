# SPDX-License-Identifier: Apache-2.0
"""A calibration is judged by the promise that it keeps least."""

from dataclasses import replace

import pytest

from analysis.calibration.calibration import CalibrationJudgement, judge_calibration
from roundabout.store import StoreError

pytestmark = pytest.mark.unit

JUST_KEPT = CalibrationJudgement(excess=0.06, difference=0.02, drift=0.03, share=1.5, gain=0.8)


def test_what_just_holds_is_worth_one():
    assert JUST_KEPT.worst == pytest.approx(1)


@pytest.mark.parametrize(
    ("promise", "broken"),
    [("excess", 0.09), ("excess", -0.09), ("difference", -0.03), ("drift", 0.045), ("share", 1.0), ("gain", 0.8 / 1.5)],
)
def test_one_broken_promise_decides(promise, broken):
    assert replace(JUST_KEPT, **{promise: broken}).worst == pytest.approx(1.5)


@pytest.mark.parametrize("promise", ["share", "gain"])
def test_no_effect_is_a_number_that_json_can_hold(promise):
    assert 50 < replace(JUST_KEPT, **{promise: -0.1}).worst < 1000


def test_a_run_is_judged_by_what_it_measured(run):
    judged = judge_calibration(run)
    assert abs(judged.difference) < 0.02
    assert judged.share > 1.2
    assert 0 < judged.gain <= 1.1


def test_a_run_without_valid_trials_of_a_variant_says_which(make_run):
    spoilt = make_run(spoilt=[("unfair", repetition) for repetition in range(1, 6)])
    with pytest.raises(StoreError, match="found no valid trial of unfair"):
        judge_calibration(spoilt)
