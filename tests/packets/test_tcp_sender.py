# SPDX-License-Identifier: Apache-2.0
"""When a TCP sender sends a burst, and when it takes a segment for lost, as Linux does."""

import numpy as np
import pytest

from roundabout.models.packets.structures import PS_PER_MS
from tests.packets.networks import PACKET, PS_PER_US, Tree, tcp_plan

pytestmark = pytest.mark.unit

LINE = [("ha", "s"), ("s", "hc")]
PORT = ("s", "hc")
BUFFER = 44
"""Segments of a socket buffer."""


def test_a_burst_that_ends_a_socket_buffer_does_not_wait() -> None:
    # A packet takes 100 us, so an ACK comes each 200 us, and small bursts wait for 1 ms: bursts of 12 segments, and of
    # the last 8 of 44.
    net = Tree(LINE, sample_us=20, slow={PORT: 100})
    pair = net.connect("ha", "hc", tcp_plan(tso_bytes=BUFFER * PACKET, window_bytes=40 * PACKET, jitter_ps=0))
    net.send_over(pair, 1 << 40)
    net.engine.run(100 * PS_PER_MS, while_jobs=False)
    sent = net.engine.samples().ports["tx_packets"][:, net.numbers["ha", "s"]]
    ends = sent[np.flatnonzero((np.diff(sent) > 0)[:-3] & (sent[1:-3] == sent[4:])) + 1]
    late = ends[ends >= 10 * BUFFER]
    assert len(late) > 40
    assert set(np.diff(late)) == {12, 8}
    assert {end % BUFFER for end in late} == {0, 12, 24, 36}


@pytest.mark.parametrize(("segments", "repaired_us"), [(9, 2000), (16, 0)])
def test_a_hole_that_one_later_segment_shows_waits_for_reordered_ones(segments: int, repaired_us: int) -> None:
    # The port takes 2 us for a packet and holds three, so that of ten that come at once the 8th does not fit. With a
    # 9th behind it, it is sent again after Linux' 2 ms, and before the timeout of 10 ms; with more behind it, at once.
    net = Tree(LINE, delay_ps=20 * PS_PER_US, queue_bytes=3 * PACKET, slow={PORT: 2})
    pair = net.connect("ha", "hc", tcp_plan(has_tail_loss_probe=0, jitter_ps=0))
    job = net.send_over(pair, segments * PACKET)
    net.engine.run()
    assert net.engine.pair_result(pair).resent >= 1
    assert net.engine.connection_result(pair).timeouts == 0
    assert repaired_us <= net.end_us(job) < repaired_us + 400


def test_timeouts_double_up_to_two_minutes() -> None:
    """A connection loses everything: timeouts are after 1, 3, 7, 15, 31, 63, 127 s, then each 120 s, as in Linux."""
    net = Tree([("ha", "s"), ("s", "hb")], sample_us=1e8, loss=1.0)
    pair = net.connect("ha", "hb", tcp_plan())
    net.send_over(pair, PACKET)
    net.engine.run(500 * 1000 * PS_PER_MS, while_jobs=False)
    assert net.engine.connection_result(pair).timeouts == 7 + 3
