# SPDX-License-Identifier: Apache-2.0
"""The rates of jobs while all of them first send."""

import math
from typing import Any

import pytest

from roundabout.models.packets import Fabric
from roundabout.models.packets.first_iteration import first_bandwidths
from roundabout.spec import TrialSpec
from tests.trials import build_trial
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

PROFILE = two_phases(10, 40_000_000, 10)


def trial(**second: Any) -> TrialSpec:
    first = {"profile": "p", "workers": ["s0", "s2"], "jitter": 0}
    return build_trial(
        profiles={"p": PROFILE},
        jobs={"j1": first, "j2": {**first, "workers": ["s1", "s3"], **second}},
        transport={"name": "dcqcn", "set": "hpcc-paper", "T_us": 60},
        iterations=1,
    )


def test_equal_jobs_share_what_the_link_carries() -> None:
    rates = first_bandwidths(trial(), 1, Fabric())
    assert rates["j1"] == pytest.approx(rates["j2"], rel=0.1)
    assert 38 < sum(rates.values()) <= 43.1
    assert rates == first_bandwidths(trial(), 1, Fabric())


def test_only_the_time_in_which_both_send_counts() -> None:
    rates = first_bandwidths(trial(start_offset_ms=5, transport={"T_us": 250}), 1, Fabric())
    assert rates["j1"] > 1.2 * rates["j2"] > 0
    assert sum(rates.values()) <= 43.1


def test_jobs_that_do_not_meet_have_no_rates() -> None:
    assert all(map(math.isnan, first_bandwidths(trial(start_offset_ms=15), 1, Fabric()).values()))
