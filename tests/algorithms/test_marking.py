# SPDX-License-Identifier: Apache-2.0
"""DCTCP's alpha in C beside RFC 8257, sections 3.3 and 3.4, in Python."""

from ctypes import byref, c_uint32 as u32, c_uint64 as u64

import pytest
from hypothesis import example, given, strategies as st

from tests.algorithms.library import LIBRARY, ONE_Q24, DctcpParams, Marking

pytestmark = pytest.mark.unit

COUNTS = st.sampled_from([0, 7, 2**31 - 20, 2**32 - 20])
"""Where counts and sequence numbers may stand: they wrap."""
ACKS = st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1), st.integers(0, 40)), min_size=10, max_size=60)


def wrapped(*numbers: int) -> list[u32]:
    return [u32(number % 2**32) for number in numbers]


@example(g=ONE_Q24 // 16, begin=2**32 - 20, acks=[(5, 0.5, 10)] * 30)  # over the wrap, window by window
@given(g=st.integers(1, ONE_Q24), begin=COUNTS, acks=ACKS)
def test_alpha_is_the_average_of_the_windows_shares(g: int, begin: int, acks: list[tuple[int, float, int]]) -> None:
    """Each ACK is for some segments, a share of them marked, whereupon the sender sends some more."""
    m, p = Marking(), DctcpParams(g_q24=g)
    acked, marked, sent = begin, begin, begin + 10
    LIBRARY.marking_begins(byref(m), *wrapped(acked, marked, sent))
    alpha, window_end, in_window, marked_in_window = 1.0, sent, 0, 0
    for segments, share, more in acks:
        now_acked = min(segments, sent - acked)
        now_marked = round(share * now_acked)
        acked, marked, sent = acked + now_acked, marked + now_marked, sent + more
        in_window, marked_in_window = in_window + now_acked, marked_in_window + now_marked
        ended = LIBRARY.marking_receives(byref(m), byref(p), *wrapped(acked, sent, acked, marked))
        assert bool(ended) == (acked >= window_end and in_window > 0)
        if ended:
            alpha = alpha * (1 - g / ONE_Q24) + marked_in_window / in_window * g / ONE_Q24
            window_end, in_window, marked_in_window = sent, 0, 0
        assert m.alpha_q24 / ONE_Q24 == pytest.approx(alpha, abs=1e-5)


@given(alpha=st.integers(0, ONE_Q24), cwnd=st.integers(0, 2**44))
def test_a_cut_is_by_half_of_alpha(alpha: int, cwnd: int) -> None:
    kept = LIBRARY.marking_cuts(byref(Marking(alpha_q24=alpha)), u64(cwnd))
    assert kept == pytest.approx(cwnd * (1 - alpha / ONE_Q24 / 2), rel=1e-9, abs=1)
    assert kept <= cwnd
