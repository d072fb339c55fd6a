# SPDX-License-Identifier: Apache-2.0
"""Congestion controls of TCP against what their papers and RFCs say, and what Linux does beyond, at one slow port."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from roundabout.models.packets import Message
from roundabout.models.packets.structures import PS_PER_MS, Structure, make_structure
from tests.packets.networks import PACKET, PS_PER_US, RATE, Tree, tcp_plan

pytestmark = pytest.mark.unit

LINE = [("ha", "s"), ("s", "hc")]
PORT = ("s", "hc")
FOREVER = 1 << 40


def run_trace(net: Tree, pair: int, until_us: int, step_us: int) -> dict[str, npt.NDArray[np.float64]]:
    """Return a connection's state at each step."""
    states = []
    for at in range(step_us, until_us + 1, step_us):
        net.engine.run(at * PS_PER_US, while_jobs=False)
        found = net.engine.connection_result(pair)
        states.append((at / 1e6, found.cwnd, found.recoveries, found.srtt_ps / 1e12))
    return dict(zip(("s", "cwnd", "recoveries", "srtt_s"), np.array(states).T, strict=True))


def start(net: Tree, plans: Sequence[Structure]) -> list[int]:
    pairs = [net.connect("ha", "hc", plan) for plan in plans]
    for pair in pairs:
        net.send_over(pair, FOREVER)
    return pairs


def test_the_window_of_reno_is_a_sawtooth() -> None:
    # 0.1 packets a us and 1 ms of round trip, and a queue of as many packets: the window goes from 200 to 100.
    net = Tree(LINE, delay_ps=250 * PS_PER_US, queue_bytes=100 * PACKET, slow={PORT: 10})
    [pair] = start(net, [tcp_plan("reno", jitter_ps=0)])
    found = run_trace(net, pair, 2_000_000, 200)
    late = found["s"] > 0.5
    window, losses = found["cwnd"][late], np.flatnonzero(np.diff(found["recoveries"][late]))
    assert len(losses) > 6
    for at in losses:
        assert window[at] == pytest.approx(202, abs=3)
        assert window[at + 1 : at + 30].min() == window[at] // 2
    assert window.mean() / window.max() == pytest.approx(3 / 4, rel=0.05)
    # One segment a round trip, which becomes twice as long: half a window in 3/4 of that many.
    assert np.diff(found["s"][late][losses]).mean() == pytest.approx(100 * 1.5e-3, rel=0.06)
    assert net.engine.pair_result(pair).acked == pytest.approx(RATE / 10 * 2, rel=0.02)


@pytest.mark.parametrize("loss", [0.0005, 0.002])
def test_the_throughput_of_reno_is_that_of_mathis(loss: float) -> None:
    # Mathis et al., CCR 1997: sqrt(3/2) segments a round trip over the square root of the loss, ACKs not delayed.
    net = Tree(LINE, sample_us=10_000, delay_ps=250 * PS_PER_US, loss=loss)
    [pair] = start(net, [tcp_plan("reno", ack_segments=1, jitter_ps=0)])
    net.engine.run(6000 * PS_PER_MS, while_jobs=False)
    found, state = net.engine.pair_result(pair), net.engine.connection_result(pair)
    assert found.resent / found.packets == pytest.approx(loss, rel=0.3)
    window = found.acked / PACKET * state.min_rtt_ps / (6000 * PS_PER_MS)
    assert window == pytest.approx(np.sqrt(1.5 * found.packets / found.resent), rel=0.15)
    assert state.timeouts == 0


def test_the_window_of_cubic_grows_as_its_rfc_says() -> None:
    # 0.01 packets a us, 80 to 110 ms of round trip: far from where CUBIC is as slow as Reno.
    net = Tree(LINE, sample_us=10_000, delay_ps=20_000 * PS_PER_US, queue_bytes=300 * PACKET, slow={PORT: 100})
    [pair] = start(net, [tcp_plan("cubic", ack_segments=1, jitter_ps=0)])
    found = run_trace(net, pair, 60_000_000, 20_000)
    losses = np.flatnonzero(np.diff(found["recoveries"]))
    assert len(losses) >= 5
    largest = 0.0
    for at, end in pairwise(losses[1:]):
        before = found["cwnd"][at]
        largest = before * (1 + 0.7) / 2 if before < largest else before
        least = at + 1 + int(found["cwnd"][at + 1 : at + 30].argmin())
        assert found["cwnd"][least] == pytest.approx(0.7 * before, abs=1)
        if at == losses[1]:
            continue  # it is not known what was lost before
        growing = slice(least + 10, end - 5)
        since_s = found["s"][growing] - found["s"][least + 4]
        until_s = np.cbrt((largest - found["cwnd"][least]) / 0.4)
        assert found["cwnd"][growing] == pytest.approx(0.4 * (since_s - until_s) ** 3 + largest, rel=0.02)


def test_cubic_is_as_fast_as_reno_where_round_trips_are_short() -> None:
    # RFC 9438, section 4.3: alpha of 0.53 with a cut to 0.7 has the mean window of Reno.
    acked = {}
    for algorithm in ("reno", "cubic"):
        net = Tree(LINE, sample_us=10_000, delay_ps=100 * PS_PER_US, loss=0.002)
        [pair] = start(net, [tcp_plan(algorithm, ack_segments=1, jitter_ps=0)])
        net.engine.run(3000 * PS_PER_MS, while_jobs=False)
        acked[algorithm] = net.engine.pair_result(pair).acked
    assert acked["cubic"] / acked["reno"] == pytest.approx(1, abs=0.2)


def test_hystart_leaves_slow_start_before_the_queue_is_full() -> None:
    lost = {}
    for hystart in (0, 1):
        net = Tree(LINE, delay_ps=250 * PS_PER_US, queue_bytes=400 * PACKET, slow={PORT: 4})
        [pair] = start(net, [tcp_plan("cubic", hystart=hystart)])
        net.engine.run(50 * PS_PER_MS, while_jobs=False)
        lost[hystart] = net.engine.connection_result(pair).lost
    assert lost[1] == 0 < lost[0]


@pytest.mark.parametrize("step", [20, 65])
def test_dctcp_keeps_the_queue_at_its_step(step: int) -> None:
    # Alizadeh et al., SIGCOMM'10, section 3.3: the queue is K and a segment a flow at most, and the port is never idle
    # where K is more than a seventh of the bandwidth-delay product, here 52 packets.
    marks = {"kmin_bytes": step * PACKET, "kmax_bytes": step * PACKET, "pmax": 1.0}
    net = Tree(LINE, delay_ps=25 * PS_PER_US, slow={PORT: 2}, **marks)
    pairs = start(net, [tcp_plan("dctcp", jitter_ps=0)] * 2)
    net.engine.run(100 * PS_PER_MS, while_jobs=False)
    ports = net.engine.samples().ports
    queue = ports["backlog_bytes"][2000:, net.numbers[PORT]] / PACKET
    assert queue.max() <= step + 2 + 2 * 2  # a segment a flow more, and a burst of two for each ACK
    assert queue.mean() == pytest.approx(step, abs=0.15 * step)
    assert queue.min() > step - 12
    assert np.ptp(ports["tx_bytes"][2000:, net.numbers[PORT]]) == pytest.approx(RATE / 2 * 80e-3, rel=0.001)
    alphas = []
    for at_ms in range(102, 200, 2):
        net.engine.run(at_ms * PS_PER_MS, while_jobs=False)
        alphas += [net.engine.connection_result(pair).alpha_q24 / (1 << 24) for pair in pairs]
    # alpha of a sawtooth: about the square root of 2 over half a window of the two (section 3.3).
    assert 0.5 * np.sqrt(2 / 60) < np.mean(alphas) < 2 * np.sqrt(2 / 30)


def test_marks_cut_reno_once_a_window() -> None:
    marks = {"kmin_bytes": 30 * PACKET, "kmax_bytes": 30 * PACKET, "pmax": 1.0}
    net = Tree(LINE, delay_ps=250 * PS_PER_US, slow={PORT: 10}, **marks)
    [pair] = start(net, [tcp_plan("reno", is_ecn=1, hystart=0)])
    found = run_trace(net, pair, 1_000_000, 200)
    state, window = net.engine.connection_result(pair), found["cwnd"][found["s"] > 0.3]
    assert state.lost == state.timeouts == 0
    assert state.reductions_by_marks > 5
    assert window.max() / 2 == pytest.approx(window.min(), abs=2)


def test_pacing_spreads_a_window_over_the_round_trip() -> None:
    # The second iteration begins with the window of the first one, of some 100 segments.
    marks = {"kmin_bytes": 60 * PACKET, "kmax_bytes": 60 * PACKET, "pmax": 1.0}
    longest = {}
    for paced in (0, 1):
        net = Tree(LINE, sample_us=1, delay_ps=100 * PS_PER_US, slow={PORT: 2}, **marks)
        pair = net.connect("ha", "hc", tcp_plan("reno", is_ecn=1, is_paced=paced, tso_bytes=10 * PACKET))
        job = net.engine.add_job(make_structure("job_plan", workers=2, iterations=2, begins_ps=0, departs_ps=-1))
        net.engine.add_phase(job, 5 * PS_PER_MS)
        net.engine.add_phase(job, 1, [Message(pair, 0, 1, 2000 * PACKET)])
        net.engine.run()
        assert net.engine.connection_result(pair).cwnd > 80
        begin_us = int(net.engine.iterations(job)[0][0]["end_ps"]) // PS_PER_US + 5000
        backlog = net.engine.samples().ports["backlog_bytes"][begin_us : begin_us + 450, net.numbers[PORT]]
        longest[paced] = backlog.max() / PACKET
    assert longest[0] > 30
    assert longest[1] < longest[0] / 2


# Beside this kernel, benchmarks/packet_tcp_kernel.py has found what the tests below hold.


def test_a_receiver_acknowledges_each_segment_while_its_window_grows() -> None:
    # The window grows by two segments for each one: over the first 100 segments, which are acknowledged one by one.
    net = Tree(LINE, slow={PORT: 2})
    plan = tcp_plan(first_window_bytes=300 * PACKET, grown_window_bytes=500 * PACKET, jitter_ps=0)
    pair = net.connect("ha", "hc", plan)
    net.send_over(pair, 1000 * PACKET)
    net.engine.run()
    assert net.engine.connection_result(pair).acks == 100 + 900 // 2


def test_the_segment_that_reports_a_reduction_is_acknowledged_at_once() -> None:
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


@pytest.mark.parametrize(("algorithm", "slow", "drops"), [("reno", 100, 2), ("cubic", 200, 1), ("cubic", 100, 4)])
def test_drops_of_a_full_queue_before_its_first_shows(algorithm: str, slow: int, drops: int) -> None:
    # The first drop shows a round trip later. Until then Reno's window has grown by one more, as the ACK that shows the
    # hole is not taken for a loss; CUBIC's grows by 0.53. But Linux' CUBIC lets a window that stays the same stand for
    # 32 ms, and then makes up for it at once: where a round trip is short, that is several packets too many.
    net = Tree(LINE, delay_ps=4 * PS_PER_US, queue_bytes=32 * PACKET, slow={PORT: slow})
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


@pytest.mark.parametrize(("packet_us", "waits"), [(2000, False), (500, True)])
def test_a_segment_waits_for_others_only_if_an_ack_is_due_within_a_ms(packet_us: int, waits: bool) -> None:
    # Each ACK lets one segment go, where segmentation offload takes more. The next ACK is due a packet's time later.
    net = Tree(LINE, sample_us=10_000, slow={PORT: packet_us})
    plan = tcp_plan(window_bytes=20 * PACKET, tso_bytes=44 * PACKET, ack_segments=1, jitter_ps=0)
    [pair] = start(net, [plan])
    net.engine.run(200 * PS_PER_MS, while_jobs=False)
    in_flight = set()
    for at_ms in range(201, 400):
        net.engine.run(at_ms * PS_PER_MS, while_jobs=False)
        in_flight.add(net.engine.connection_result(pair).in_flight)
    assert max(in_flight) == 20
    assert (min(in_flight) < 20) == waits
