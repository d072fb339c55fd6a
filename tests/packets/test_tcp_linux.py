# SPDX-License-Identifier: Apache-2.0
"""What Linux' TCP does beyond its RFCs, as measured beside this kernel (benchmarks/packet_tcp_kernel.py)."""

import pytest

from roundabout.models.packets.structures import PS_PER_MS
from tests.packets.networks import PACKET, PS_PER_US, Tree, tcp_plan

pytestmark = pytest.mark.unit

LINE = [("ha", "s"), ("s", "hc")]
PORT = ("s", "hc")
FOREVER = 1 << 40


def test_a_receiver_acknowledges_each_segment_while_its_window_grows() -> None:
    # The window grows by two segments for each one: over the first 100 segments, which are acknowledged one by one.
    net = Tree(LINE, slow={PORT: 2})
    plan = tcp_plan(first_window_bytes=300 * PACKET, grown_window_bytes=500 * PACKET, jitter_ps=0)
    pair = net.connect("ha", "hc", plan)
    net.send_over(pair, 1000 * PACKET)
    net.engine.run()
    assert net.engine.connection_result(pair).acks == 100 + 900 // 2


def test_the_segment_that_tells_of_a_reduction_is_acknowledged_at_once() -> None:
    # The receiver acknowledges the first 16 segments one by one, and from then on the last one and that with CWR. The
    # first 9 of 30 leave more than 20 behind. Without CWR's, the sender would wait for the timer of 40 ms.
    marks = {"kmin_bytes": 20 * PACKET, "kmax_bytes": 20 * PACKET, "pmax": 1.0}
    net = Tree(LINE, slow={PORT: 10}, **marks)
    pair = net.connect("ha", "hc", tcp_plan(is_ecn=1, initial_window=30, ack_segments=1000, jitter_ps=0))
    job = net.send_over(pair, 45 * PACKET)
    net.engine.run()
    found = net.engine.connection_result(pair)
    assert found.reductions_by_marks == 1
    assert found.acks == 16 + 1 + 1
    assert net.end_us(job) < 1000


@pytest.mark.parametrize(("algorithm", "drops"), [("reno", 2), ("cubic", 1)])
def test_drops_of_a_full_queue_before_its_first_shows(algorithm: str, drops: int) -> None:
    # The first drop shows a round trip later. Until then Reno's window has grown by one more, as the ACK that shows the
    # hole is not taken for a loss; CUBIC's grows by 0.53. The kernel drops as many (docs/results/packet-level.md).
    net = Tree(LINE, delay_ps=4 * PS_PER_US, queue_bytes=32 * PACKET, slow={PORT: 100})
    pair = net.connect("ha", "hc", tcp_plan(algorithm, jitter_ps=0))
    net.send_over(pair, FOREVER)
    net.engine.run(500 * PS_PER_MS, while_jobs=False)
    before = net.engine.connection_result(pair)
    begin = before.lost, before.recoveries
    net.engine.run(3000 * PS_PER_MS, while_jobs=False)
    found = net.engine.connection_result(pair)
    assert found.recoveries - begin[1] > 10
    assert (found.lost - begin[0]) / (found.recoveries - begin[1]) == pytest.approx(drops, abs=0.1)


def test_cubic_grows_by_a_twentieth_a_round_trip_before_its_first_loss() -> None:
    # HyStart leaves slow start; tcp_cubic.c then grows by one for 20 acknowledged segments at least.
    net = Tree(LINE, sample_us=10_000, delay_ps=5_000 * PS_PER_US, slow={PORT: 100})
    pair = net.connect("ha", "hc", tcp_plan("cubic", hystart=1, jitter_ps=0))
    net.send_over(pair, FOREVER)
    net.engine.run(500 * PS_PER_MS, while_jobs=False)
    begin, acked = net.engine.connection_result(pair), net.engine.pair_result(pair).acked
    net.engine.run(600 * PS_PER_MS, while_jobs=False)
    found = net.engine.connection_result(pair)
    assert found.lost == 0
    assert begin.ssthresh < begin.cwnd
    segments = (net.engine.pair_result(pair).acked - acked) / PACKET
    assert found.cwnd - begin.cwnd == pytest.approx(segments / 20, abs=1)
