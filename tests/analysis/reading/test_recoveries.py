# SPDX-License-Identifier: Apache-2.0
"""Recoveries from events of links, on made-up iterations."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from analysis.reading.recoveries import JobTimes, Recovery, find_recoveries

pytestmark = pytest.mark.unit


def times(lengths_ms: Sequence[float]) -> JobTimes:
    """Return iterations that follow each other from 0 on."""
    ends = np.cumsum(lengths_ms)
    return JobTimes(ends - lengths_ms, ends, np.array(lengths_ms, float))


def test_a_job_has_recovered_where_the_first_of_three_usual_iterations_begins() -> None:
    # At 450 ms of an iteration from 400 to 650; the next one lasts 150 ms.
    found = find_recoveries(times([100] * 4 + [250, 150] + [101] * 5), [450])
    assert found == [Recovery(800 - 450, pytest.approx(1.5 + 0.5))]


def test_a_usual_iteration_between_slow_ones_is_no_recovery() -> None:
    found = find_recoveries(times([100] * 4 + [200, 100, 200] + [100] * 3), [450])
    assert found == [Recovery(900 - 450, pytest.approx(2))]


def test_an_event_without_effect_takes_no_time() -> None:
    assert find_recoveries(times([100] * 10), [450]) == [Recovery(0, 0)]


def test_a_job_that_stays_slow_never_recovers() -> None:
    assert find_recoveries(times([100] * 4 + [150] * 4), [450]) == [Recovery(math.inf, pytest.approx(2))]


def test_an_iteration_with_two_events_counts_for_the_first() -> None:
    found = find_recoveries(times([100] * 4 + [300] + [100] * 5), [450, 650])
    assert found == [Recovery(250, pytest.approx(2)), Recovery(50, 0)]


def test_events_share_what_a_job_loses() -> None:
    """Of five iterations that take twice as long, the last one has the second event."""
    found = find_recoveries(times([100] * 4 + [200] * 5 + [100] * 5), [400, 1250])
    assert [each.recovery_ms for each in found] == [1000, 150]
    assert [each.lost_iterations for each in found] == pytest.approx([4, 1])
