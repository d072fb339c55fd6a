# SPDX-License-Identifier: Apache-2.0
"""DCTCP's window in C beside RFC 8257, sections 3.3 to 3.5, and RFC 5681, section 3.1, in Python."""

from ctypes import byref, c_uint32 as u32
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from tests.algorithms.library import LIBRARY, ONE_Q24, Cwnd, Marking

pytestmark = pytest.mark.unit

INFINITE = 2**31 - 1
GARBAGE = 0x822034E5  # what the kernel may come to take for a window: half of an address
KINDS = (None, "marks", "loss")
"""In the order of enum reduction."""


@dataclass
class Reference:
    """Sequence numbers do not wrap here; `ends`: of the windows of data that reductions are for, by what they were."""

    cwnd: int
    ssthresh: int = INFINITE
    factor: int = ONE_Q24
    counted: int = 0
    carried: int = 0
    ends: dict[str, int] = field(default_factory=dict)

    def ack(self, una: int, sent: int, acked: int, *, kernels: int, alpha: int, reduction: str | None,
            used: bool) -> bool:  # fmt: skip
        """Returns whether there was a timeout."""
        self.ends = {kind: end for kind, end in self.ends.items() if end > una}
        timeout = kernels < self.cwnd
        if timeout:
            if not self.ends.keys() & {"loss", "timeout"}:
                self.ssthresh = max(self.exactly_q24 // 2 // ONE_Q24, 2)
            self.cwnd, self.counted, self.ends = kernels, 0, {"timeout": sent}
        waited = {"marks", "loss", "timeout"} if reduction == "marks" else {"loss", "timeout"}
        if reduction and not self.ends.keys() & waited:
            cut_q24 = self.exactly_q24 * alpha // ONE_Q24 // 2 if reduction == "marks" else (self.exactly_q24 + 1) // 2
            self.cwnd, part_q24 = divmod(max(self.exactly_q24 - cut_q24, 2 * ONE_Q24), ONE_Q24)
            self.ssthresh, self.counted, self.ends[reduction] = self.cwnd, self.cwnd * part_q24 // ONE_Q24, sent
        elif used and self.ends.keys() <= {"timeout"}:
            self.grow(acked)
        return timeout

    @property
    def exactly_q24(self) -> int:
        """With the fraction of a segment that is to come."""
        return self.cwnd * ONE_Q24 + self.counted * ONE_Q24 // self.cwnd

    def grow(self, acked: int) -> None:
        slow = min(acked, max(self.ssthresh - self.cwnd, 0))
        self.cwnd += slow
        scaled, self.carried = divmod((acked - slow) * self.factor + self.carried, ONE_Q24)
        more, self.counted = divmod(self.counted + scaled, self.cwnd)
        self.cwnd += more


@dataclass
class Flow:
    """A sender of one sequence number a segment, in C and by the reference."""

    begin: int
    reference: Reference

    def __post_init__(self) -> None:
        self.w, self.carried = Cwnd(), u32(0)
        self.una, self.sent = self.begin, self.begin + self.reference.cwnd
        LIBRARY.cwnd_begins(byref(self.w), self.reference.cwnd, self.reference.ssthresh)

    def ack(self, acked: int, *, reduction: str | None = None, kernels: int | None = None, alpha: int = ONE_Q24,
            used: bool = True) -> None:  # fmt: skip
        """`kernels`: the window as the kernel would have it, or as it was left."""
        acked = min(acked, self.sent - self.una)
        self.una += acked
        kernels = self.w.segments if kernels is None else kernels
        counts = [u32(each % 2**32) for each in (self.una, self.sent, kernels, acked)]
        last = [KINDS.index(reduction), int(used), u32(self.reference.factor), byref(self.carried)]
        timeout = LIBRARY.cwnd_receives(byref(self.w), byref(Marking(alpha_q24=alpha)), *counts, *last)
        options: Any = {"kernels": kernels, "alpha": alpha, "reduction": reduction, "used": used}
        assert bool(timeout) == self.reference.ack(self.una, self.sent, acked, **options)
        assert (self.w.segments, self.w.ssthresh) == (self.reference.cwnd, self.reference.ssthresh)
        self.sent = max(self.sent, self.una + self.w.segments)

    def window(self) -> None:
        """All that is under way is acknowledged, segment by segment."""
        for _ in range(self.sent - self.una):
            self.ack(1)


ACKS = st.fixed_dictionaries(
    {
        "acked": st.integers(0, 60),
        "reduction": st.sampled_from([None, None, None, *KINDS]),
        "kernels": st.sampled_from([None] * 8 + [1, 3, GARBAGE]),
        "alpha": st.integers(0, ONE_Q24),
        "used": st.sampled_from([True, True, True, False]),
    }
)
BEGINS = st.sampled_from([0, 2**31 - 50, 2**32 - 50])
"""Where sequence numbers may stand: they wrap."""


@given(
    begin=BEGINS,
    cwnd=st.integers(1, 1000),
    ssthresh=st.sampled_from([2, 40, INFINITE]),
    factor=st.integers(ONE_Q24 // 100, 10 * ONE_Q24),
    acks=st.lists(ACKS, max_size=80),
)
def test_the_window_follows_the_rfcs_step_by_step(
    begin: int, cwnd: int, ssthresh: int, factor: int, acks: list
) -> None:
    flow = Flow(begin, Reference(cwnd, ssthresh, factor))
    for each in acks:
        flow.ack(**each)


@example(factor=0.25, cwnd=3)
@given(factor=st.sampled_from([0.25, 0.5, 1, 2]), cwnd=st.integers(2, 30))
def test_the_window_grows_by_f_segments_per_window(factor: float, cwnd: int) -> None:
    flow = Flow(0, Reference(cwnd, 2, round(factor * ONE_Q24)))
    for _ in range(40):
        flow.window()
    # The windows get longer while they are acknowledged.
    assert flow.w.segments - cwnd == pytest.approx(40 * factor, rel=0.1, abs=1)


@pytest.mark.parametrize(("reduction", "kept"), [("marks", 75), ("loss", 50)])
def test_marks_and_losses_reduce_once_a_window_of_data(reduction: str, kept: int) -> None:
    flow = Flow(2**32 - 50, Reference(100, 2))
    for _ in range(99):
        flow.ack(1, reduction=reduction, alpha=ONE_Q24 // 2)
        assert flow.w.segments == kept
    flow.ack(1, reduction=reduction, alpha=ONE_Q24 // 2)
    assert flow.w.segments < kept


def test_a_loss_among_marks_halves_what_they_left() -> None:
    flow = Flow(0, Reference(100, 2))
    for reduction, left in (("marks", 75), ("loss", 37), ("marks", 37), ("loss", 37)):
        flow.ack(1, reduction=reduction, alpha=ONE_Q24 // 2)
        assert flow.w.segments == left


def test_after_a_timeout_it_starts_slowly_to_half_of_what_it_was() -> None:
    flow = Flow(0, Reference(20, 2))
    flow.ack(0, kernels=1)
    assert (flow.w.segments, flow.w.ssthresh) == (1, 10)
    for acked, left in ((1, 2), (2, 4), (6, 10), (9, 10), (1, 11)):
        flow.ack(acked)
        assert flow.w.segments == left


def test_the_algorithm_overwrites_the_kernels_window() -> None:
    flow = Flow(0, Reference(20, 10))
    flow.ack(1, kernels=GARBAGE, reduction="marks")
    assert (flow.w.segments, flow.w.ssthresh) == (10, 10)


@pytest.mark.parametrize("alpha", [0.15, 0.3])
def test_windows_are_as_f_where_marks_are_the_same(alpha: float) -> None:
    """Also where a cut is of less than a segment. Each eighth window is marked, and each other one grows."""
    mean = {}
    for factor in (0.25, 0.5, 1, 2):
        flow, sizes = Flow(0, Reference(10, 2, round(factor * ONE_Q24))), []
        for number in range(800):
            flow.ack(1, reduction="marks" if number % 8 == 0 else None, alpha=round(alpha * ONE_Q24))
            flow.window()
            sizes.append(flow.w.segments)
        mean[factor] = sum(sizes[400:]) / 400 / factor
    assert max(mean.values()) < 1.25 * min(mean.values()), mean
