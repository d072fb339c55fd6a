# SPDX-License-Identifier: Apache-2.0
"""Swift's window and target delay (SIGCOMM'20, Algorithm 1 and section 3.5), against the paper's formulas."""

import math
from ctypes import byref, c_uint64 as u64
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.algorithms.library import LIBRARY, ONE_Q24, SwiftCounters, SwiftFlow, SwiftParams

pytestmark = pytest.mark.unit

BASE, HOP, RANGE = 20_000, 3_000, 100_000
MIN_CWND, FS_MIN, FS_MAX = 0.01, 0.1, 100.0
PARAMS = SwiftParams(
    base_target=BASE,
    hop=HOP,
    fs_range=RANGE,
    fs_min_cwnd_q24=round(FS_MIN * ONE_Q24),
    fs_max_cwnd_q24=round(FS_MAX * ONE_Q24),
    ai_q24=ONE_Q24,
    beta_q24=round(0.8 * ONE_Q24),
    max_mdf_q24=ONE_Q24 // 2,
    min_cwnd_q24=round(MIN_CWND * ONE_Q24),
    max_cwnd=1000,
    initial_cwnd=10,
    retx_reset=3,
)
LINKS = 4


class Swift:
    """A flow, with what it receives."""

    def __init__(self, cwnd: float = 10.0, now: int = 0) -> None:
        self.flow, self.counters = SwiftFlow(), SwiftCounters()
        LIBRARY.swift_begins(byref(self.flow), byref(PARAMS), LINKS, u64(now))
        self.flow.cwnd_q24 = round(cwnd * ONE_Q24)

    def acknowledge(self, now: int, delay: int, packets: float = 1.0) -> None:
        acked = u64(round(packets * ONE_Q24))
        LIBRARY.swift_receives(*self._state, u64(now), u64(delay), acked)

    def lose(self, now: int) -> None:
        LIBRARY.swift_loses(*self._state, u64(now))

    def time_out(self, now: int) -> None:
        LIBRARY.swift_times_out(*self._state, u64(now))

    @property
    def _state(self) -> tuple[Any, Any, Any]:
        return byref(self.flow), byref(PARAMS), byref(self.counters)

    @property
    def cwnd(self) -> float:
        return float(self.flow.cwnd_q24 / ONE_Q24)

    @property
    def target(self) -> int:
        return int(LIBRARY.swift_targets(byref(self.flow), byref(PARAMS)))


def paper_target(cwnd: float) -> float:
    """Return the target delay as section 3.5 has it, in ns."""
    alpha = RANGE / (1 / math.sqrt(FS_MIN) - 1 / math.sqrt(FS_MAX))
    beta = -alpha / math.sqrt(FS_MAX)
    return BASE + LINKS * HOP + max(0.0, min(alpha / math.sqrt(cwnd) + beta, RANGE))


@given(st.floats(MIN_CWND, 1000.0))
def test_the_target_delay_is_the_papers(cwnd: float) -> None:
    assert Swift(cwnd).target == pytest.approx(paper_target(cwnd), rel=1e-4)


@given(cwnd=st.floats(MIN_CWND, 999.0), packets=st.floats(0.1, 2.0))
def test_a_window_grows_by_ai_in_a_round_trip(cwnd: float, packets: float) -> None:
    swift = Swift(cwnd)
    swift.acknowledge(10**6, BASE, packets)
    step = packets / cwnd if cwnd >= 1 else packets
    assert swift.cwnd == pytest.approx(min(cwnd + step, 1000.0), rel=1e-5)


@given(cwnd=st.floats(1.0, 1000.0), delay=st.integers(BASE, 10**7))
def test_a_window_shrinks_by_how_far_the_delay_is_above_the_target(cwnd: float, delay: int) -> None:
    swift = Swift(cwnd)
    target = swift.target
    swift.acknowledge(10**8, delay)
    if delay < target:
        assert swift.cwnd >= cwnd
    else:
        factor = max(1 - 0.8 * (delay - target) / delay, 0.5)
        assert swift.cwnd == pytest.approx(max(cwnd * factor, MIN_CWND), rel=1e-5)


def test_a_window_shrinks_once_in_a_round_trip() -> None:
    swift = Swift(100.0)
    for now in range(1_000_000, 1_100_000, 10_000):
        swift.acknowledge(now, 200_000)
    assert swift.counters.decreases == 1
    swift.acknowledge(1_200_000, 200_000)
    assert swift.counters.decreases == 2


def test_losses_halve_the_window_once_in_a_round_trip() -> None:
    swift = Swift(64.0)
    swift.acknowledge(100_000, BASE)
    cwnd = swift.cwnd
    swift.lose(200_000)
    swift.lose(200_001)
    assert swift.cwnd == pytest.approx(cwnd / 2)


def test_timeouts_in_a_row_set_the_smallest_window() -> None:
    swift = Swift(64.0)
    swift.time_out(10**6)
    swift.time_out(2 * 10**6)
    assert swift.cwnd == pytest.approx(16.0)
    swift.time_out(3 * 10**6)
    assert swift.cwnd == pytest.approx(MIN_CWND, rel=1e-5)


def test_a_window_below_a_packet_is_paced() -> None:
    swift = Swift(0.25)
    swift.acknowledge(10**6, 10**7)
    swift.flow.cwnd_q24 = ONE_Q24 // 4
    assert LIBRARY.swift_paces(byref(swift.flow)) == 4 * swift.flow.rtt
    swift.flow.cwnd_q24 = ONE_Q24
    assert LIBRARY.swift_paces(byref(swift.flow)) == 0


EVENTS = st.lists(st.tuples(st.sampled_from(["ack", "loss", "timeout"]), st.integers(1, 10**6)), max_size=60)


@given(EVENTS, st.integers(0, 2**63))
def test_the_window_stays_between_its_limits(events: list[tuple[str, int]], now: int) -> None:
    swift = Swift(now=now)
    for kind, ns in events:
        now += ns
        if kind == "ack":
            swift.acknowledge(now, ns)
        elif kind == "loss":
            swift.lose(now)
        else:
            swift.time_out(now)
        assert PARAMS.min_cwnd_q24 <= swift.flow.cwnd_q24 <= PARAMS.max_cwnd << 24
