# SPDX-License-Identifier: Apache-2.0
"""What a flow's pacing timer did not send in time (transports/dcqcn/pacing_debt.h), beside Linux' pacing."""

import ctypes
import random
from ctypes import byref, c_int64 as s64, c_uint32 as u32

import pytest

from tests.algorithms.library import LIBRARY, DcqcnCounters, Structure

pytestmark = pytest.mark.unit

BURST_BYTES = 3 * 1448
SECONDS = 2


class PacingDebt(Structure):
    """struct pacing_debt."""

    _fields_ = (("bytes", s64), ("sent", u32), ("had_data", ctypes.c_bool))


def paced_rate(rate: int, late_us: float, *, pays: bool, seed: int = 1) -> tuple[float, DcqcnCounters]:
    """Return the rate at which Linux paces a flow whose timer fires `late_us` late on average, and the counters.

    A burst's time begins when the last one ended, or up to half of its own time earlier than it left. Each burst is
    acknowledged 0.1 ms after it left.
    """
    chance, debt, counters = random.Random(seed), PacingDebt(), DcqcnCounters()
    LIBRARY.pacing_debt_begins(byref(debt), 0)
    now = ends = 0.0
    sent, acked_at, paced, acks = 0, 0, rate, [0.0]
    while now < SECONDS * 1e6:
        now = max(now, ends) + chance.expovariate(1 / late_us)
        while acks[0] <= now and len(acks) > 1:
            at = int(acks.pop(0))
            LIBRARY.pacing_debt_receives(byref(debt), byref(counters), rate, at - acked_at, sent & 0xFFFFFFFF, 1)
            acked_at, paced = at, LIBRARY.pacing_debt_paces(byref(debt), rate, 53_750_000) if pays else rate
        sent += BURST_BYTES
        length = BURST_BYTES / paced * 1e6
        ends = now + length - min(length / 2, now - ends)
        acks.append(now + 100)
    return sent / SECONDS, counters


@pytest.mark.parametrize("rate", [20_000_000, 25_000_000, 35_000_000])
def test_a_flow_sends_at_its_rate(rate: int) -> None:
    late_us = 40
    unpaid, _ = paced_rate(rate, late_us, pays=False)
    paid, counters = paced_rate(rate, late_us, pays=True)
    assert paid == pytest.approx(rate, rel=0.01)
    assert counters.paced_bytes == pytest.approx(counters.asked_bytes, rel=0.01)
    assert unpaid < 0.99 * rate


def test_without_it_the_faster_of_two_flows_loses_more() -> None:
    fast, slow = 35_000_000, 17_500_000
    assert paced_rate(fast, 40, pays=False)[0] < 1.9 * paced_rate(slow, 40, pays=False)[0]
    assert paced_rate(fast, 40, pays=True)[0] == pytest.approx(2 * paced_rate(slow, 40, pays=True)[0], rel=0.02)


def test_a_debt_has_limits() -> None:
    debt, counters, rate = PacingDebt(), DcqcnCounters(), 20_000_000
    LIBRARY.pacing_debt_begins(byref(debt), 2**32 - 1000)
    debt.had_data = True
    for _ in range(100):
        LIBRARY.pacing_debt_receives(byref(debt), byref(counters), rate, 900, 2**32 - 1000, 1)
    assert debt.bytes == 10_000  # half of a millisecond at this rate
    assert LIBRARY.pacing_debt_paces(byref(debt), rate, 50_000_000) == 30_000_000
    assert LIBRARY.pacing_debt_paces(byref(debt), rate, 25_000_000) == 25_000_000
    assert LIBRARY.pacing_debt_paces(byref(debt), 10_000_000, 50_000_000) == 15_000_000  # after a cut
    LIBRARY.pacing_debt_receives(byref(debt), byref(counters), rate, 500, 21_000, 1)  # 22,000 bytes, for 10,000 due
    assert debt.bytes == -2000
    assert LIBRARY.pacing_debt_paces(byref(debt), rate, 50_000_000) == 18_000_000


@pytest.mark.parametrize(("since_us", "has_data"), [(100, 0), (1001, 1)])
def test_a_flow_without_data_or_after_a_silence_has_no_debt(since_us: int, has_data: int) -> None:
    debt, counters = PacingDebt(), DcqcnCounters()
    LIBRARY.pacing_debt_begins(byref(debt), 0)
    for missing in (0, 10_000):  # at the first ACK it is not known whether it had data before
        LIBRARY.pacing_debt_receives(byref(debt), byref(counters), 20_000_000, 900, 0, 1)
        assert debt.bytes == missing
    LIBRARY.pacing_debt_receives(byref(debt), byref(counters), 20_000_000, since_us, 0, has_data)
    assert debt.bytes == 0
    assert counters.asked_bytes == 18_000
