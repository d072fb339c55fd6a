# SPDX-License-Identifier: Apache-2.0
"""NSCC's window (Ultra Ethernet specification 1.0), against its rules worked out in floating point."""

from ctypes import byref, c_uint64 as u64

import pytest
from hypothesis import given, strategies as st

from tests.algorithms.library import LIBRARY, ONE_Q24, NsccCounters, NsccFlow, NsccParams

pytestmark = pytest.mark.unit

PACKET = 4096
RTT = 12_000
LINE = 12_500_000_000
BDP = 150_000
PARAMS = NsccParams(line=LINE, qa_gate=3, gamma_q24=round(0.8 * ONE_Q24))


class Nscc:
    """A flow of 100 Gbit/s and 12 us, the reference network, with what it receives."""

    def __init__(self) -> None:
        self.flow, self.counters, self.now = NsccFlow(), NsccCounters(), 10 * RTT
        LIBRARY.nscc_begins(byref(self.flow), byref(PARAMS), PACKET, u64(RTT))

    def acknowledge(self, delay: int, *, marked: bool, after: int = 0, size: int = PACKET) -> None:
        self.now += after
        numbers = (u64(self.now), u64(RTT + delay), u64(size), u64(self.flow.cwnd))
        LIBRARY.nscc_receives(byref(self.flow), byref(PARAMS), byref(self.counters), *numbers, int(marked))

    def lose(self) -> None:
        numbers = (u64(self.now), u64(PACKET), u64(self.flow.cwnd))
        LIBRARY.nscc_loses(byref(self.flow), byref(PARAMS), byref(self.counters), *numbers)


def test_constants_are_those_of_the_reference_network() -> None:
    flow = Nscc().flow
    assert (flow.cwnd, flow.max_cwnd, flow.target) == (BDP * 3 // 2, BDP * 3 // 2, RTT)
    assert flow.proportional == pytest.approx(4 * PACKET, abs=1)
    assert flow.fair == pytest.approx(5 * PACKET, abs=1)
    assert flow.eta == pytest.approx(0.15 * PACKET, abs=1)
    assert flow.fast_q24 == pytest.approx(0.25 * ONE_Q24, rel=1e-4)


@pytest.mark.parametrize(
    ("delay", "marked", "kind"),
    [
        (RTT, False, "fair_increases"),
        (RTT // 2, False, "proportional_increases"),
        (RTT // 2, True, None),
    ],
)
def test_mark_and_delay_choose_the_reaction(delay: int, marked: bool, kind: str | None) -> None:
    nscc = Nscc()
    nscc.acknowledge(delay, marked=marked)
    found = {name: getattr(nscc.counters, name) for name, *_ in NsccCounters._fields_}
    assert found == {name: int(name == kind) for name in found}


def test_a_proportional_increase_is_alpha_times_the_room_below_the_target() -> None:
    nscc = Nscc()
    nscc.flow.cwnd = 100_000
    nscc.flow.adjusted_at = nscc.now
    for _ in range(8):
        nscc.acknowledge(RTT // 4, marked=False)
    assert nscc.flow.cwnd == 100_000
    nscc.acknowledge(RTT // 4, marked=False)
    assert nscc.flow.cwnd == pytest.approx(100_000 + 9 * PACKET * 4 * PACKET * 0.75 / 100_000, abs=2)


def test_a_window_without_queues_is_followed_by_fast_increases() -> None:
    nscc = Nscc()
    nscc.flow.cwnd = 10 * PACKET
    for _ in range(14):
        nscc.acknowledge(0, marked=False)
    assert nscc.counters.fast_increases > 0
    cwnd = nscc.flow.cwnd
    nscc.acknowledge(0, marked=False)
    assert nscc.flow.cwnd == pytest.approx(cwnd + PACKET / 4, abs=2)


def test_marks_cut_by_the_average_delay_once_in_a_round_trip() -> None:
    nscc = Nscc()
    nscc.flow.average_delay_q16 = 2 * RTT << 16
    nscc.flow.adjusted_at = nscc.now
    cwnd = nscc.flow.cwnd
    nscc.acknowledge(2 * RTT, marked=True)
    assert nscc.flow.cwnd == pytest.approx(cwnd * (1 - 0.8 / 2), rel=1e-3)
    nscc.acknowledge(2 * RTT, marked=True, after=RTT)
    assert nscc.counters.decreases == 1
    nscc.acknowledge(2 * RTT, marked=True, after=1)
    assert nscc.counters.decreases == 2


def test_quick_adapt_sets_the_window_to_what_arrived() -> None:
    nscc = Nscc()
    nscc.acknowledge(RTT, marked=True)  # begins the first interval
    nscc.acknowledge(5 * RTT, marked=True, after=RTT, size=2 * PACKET)
    nscc.acknowledge(5 * RTT, marked=True, after=RTT + 1, size=PACKET)
    assert nscc.counters.quick_adapts == 1
    assert nscc.flow.cwnd == 3 * PACKET


def test_a_loss_takes_its_bytes_from_the_window() -> None:
    nscc = Nscc()
    nscc.acknowledge(0, marked=False)
    cwnd = nscc.flow.cwnd
    nscc.lose()
    assert nscc.flow.cwnd == cwnd - PACKET
    nscc.now += 2 * RTT + 1
    nscc.lose()
    assert nscc.flow.cwnd == PACKET  # Nothing arrived in a round trip.


ACKS = st.tuples(st.integers(0, 20 * RTT), st.booleans(), st.integers(0, 3 * RTT), st.integers(1, 4 * PACKET))


@given(st.lists(ACKS | st.just(None), max_size=80))
def test_the_window_stays_between_its_limits(events: list[tuple[int, bool, int, int] | None]) -> None:
    nscc = Nscc()
    for each in events:
        if each is None:
            nscc.lose()
        else:
            delay, marked, after, size = each
            nscc.acknowledge(delay, marked=marked, after=after, size=size)
        assert PACKET <= nscc.flow.cwnd <= nscc.flow.max_cwnd
