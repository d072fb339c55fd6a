# SPDX-License-Identifier: Apache-2.0
"""The rate at which Linux paces a burst (transports/dcqcn/burst_rate.h), beside a limiter that follows R_C each us."""

from ctypes import byref, c_uint32 as u32

import pytest
from hypothesis import given, settings, strategies as st

from tests.algorithms.library import CLOCKS, LIBRARY, DcqcnCounters, DcqcnParams, HeldCnps, ReactionPoint

pytestmark = pytest.mark.unit

US_PER_S = 1_000_000
BURST_BYTES = 4600
PARAMETERS = DcqcnParams(
    T_us=2000,
    F=1,
    R_AI=6250,
    R_HAI=62_500,
    R_min=1250,
    R_max=53_750_000,
    g_q24=81_920,
    alpha_timer_us=16,
    hyper_by_stage=1,
)


def flow(rate: int, target: int, now: int) -> ReactionPoint:
    """Return a flow that was cut to `rate` at `now`."""
    return ReactionPoint(R_C=rate, R_T=target, increased_us=now, alpha_us=now, was_cut=True)


def leaves_after_us(rp: ReactionPoint, now: int, most_us: int) -> int:
    """Return when a limiter that follows R_C has sent a burst, without CNPs."""
    held, counters, left = HeldCnps(), DcqcnCounters(), BURST_BYTES * US_PER_S
    for us in range(1, most_us):
        left -= rp.R_C
        if left <= 0:
            return us
        LIBRARY.reaction_point_receives(
            byref(rp), byref(held), byref(PARAMETERS), byref(counters), u32(now + us), u32(1), 0, 0
        )
    return most_us


@settings(max_examples=25)
@given(st.integers(1250, 4_000_000), st.floats(1, 50), CLOCKS)
def test_a_burst_leaves_when_a_limiter_that_follows_the_rate_has_sent_it(rate: int, over: float, now: int) -> None:
    target = min(int(rate * over), PARAMETERS.R_max)
    paced = LIBRARY.burst_paces(byref(flow(rate, target, now)), byref(PARAMETERS), u32(now), BURST_BYTES)
    waits_us = leaves_after_us(flow(rate, target, now), now, 40_000)
    assert waits_us < 40_000
    assert BURST_BYTES * US_PER_S / paced == pytest.approx(waits_us, rel=0.002, abs=2)


def test_a_rate_that_sends_the_burst_before_the_timer_is_kept_exactly() -> None:
    rp = flow(2_300_001, 20_000_000, 7)
    assert LIBRARY.burst_paces(byref(rp), byref(PARAMETERS), u32(7), BURST_BYTES) == 2_300_001


def test_at_the_lowest_rate_a_burst_waits_for_milliseconds_and_not_for_seconds() -> None:
    assert BURST_BYTES / PARAMETERS.R_min > 3.6
    rp = flow(PARAMETERS.R_min, PARAMETERS.R_min, 0)
    assert BURST_BYTES / LIBRARY.burst_paces(byref(rp), byref(PARAMETERS), u32(0), BURST_BYTES) < 0.02
