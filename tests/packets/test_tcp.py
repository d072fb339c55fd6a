# SPDX-License-Identifier: Apache-2.0
"""Properties of TCP over any losses: all bytes arrive once and in order, fairly, at no more than links carry."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.packets import Message
from roundabout.models.packets.structures import DECLARATIONS, PS_PER_MS, make_structure
from tests.packets.networks import ALGORITHMS, PACKET, PS_PER_US, RATE, Tree, tcp_plan

pytestmark = pytest.mark.unit

STAR = [("ha", "s"), ("hb", "s"), ("hc", "s")]
SAMPLE_US = 100
MARKS = {"kmin_bytes": 20 * PACKET, "kmax_bytes": 20 * PACKET, "pmax": 1.0}


@st.composite
def cases(draw: st.DrawFn, most_loss: float = 0.2) -> tuple[dict[str, Any], list[dict[str, Any]], list[int], int]:
    """Ports, connections from two hosts to one, their bytes, and a seed."""
    port = {
        "queue_bytes": draw(st.integers(3, 100)) * PACKET,
        "loss": draw(st.sampled_from([0.0, 0.001, 0.02, most_loss])),
        "delay_ps": draw(st.integers(0, 50)) * PS_PER_US,
        **draw(st.sampled_from([{}, MARKS])),
    }
    connections = [
        {
            "algorithm": draw(st.sampled_from(ALGORITHMS)),
            "is_ecn": draw(st.integers(0, 1)),
            "tso_bytes": draw(st.sampled_from([1, 2, 44])) * PACKET,
            "ack_segments": draw(st.integers(1, 4)),
            "has_tail_loss_probe": draw(st.integers(0, 1)),
            "is_paced": draw(st.integers(0, 1)),
            "hystart": draw(st.integers(0, 1)),
            "window_bytes": draw(st.sampled_from([4, 1 << 20])) * PACKET,
            "jitter_ps": draw(st.sampled_from([0, PS_PER_US])),
        }
        for _ in range(draw(st.integers(1, 3)))
    ]
    sizes = [draw(st.integers(1, 700_000)) for _ in connections]
    return port, connections, sizes, draw(st.integers(0, 2**62))


def play(case: Any) -> tuple[Tree, list[int], list[int]]:
    port, connections, sizes, seed = case
    net = Tree(STAR, sample_us=SAMPLE_US, nic={"seed": seed}, **port)
    hosts = ("ha", "hb", "ha")
    pairs = [net.connect(host, "hc", tcp_plan(**each)) for host, each in zip(hosts, connections, strict=False)]
    jobs = [net.send_over(pair, size) for pair, size in zip(pairs, sizes, strict=True)]
    net.engine.run()
    return net, pairs, jobs


@settings(max_examples=50, deadline=None)
@given(cases())
def test_all_bytes_arrive_whatever_is_lost(case: Any) -> None:
    net, pairs, jobs = play(case)
    assert all(net.engine.completed(job) == 1 for job in jobs)
    for pair, size in zip(pairs, case[2], strict=True):
        found = net.engine.pair_result(pair)
        assert found.acked == size
        segments = -(-size // PACKET)
        # Each segment is new once, and everything else was sent again.
        assert found.packets == segments + found.resent
        assert found.delivered >= segments
        assert net.engine.connection_result(pair).in_flight == 0


@settings(max_examples=25, deadline=None)
@given(cases(most_loss=0.05))
def test_what_is_sent_arrives_or_is_dropped(case: Any) -> None:
    port, *rest = case
    net, pairs, _ = play(({**port, "loss": 0.0}, *rest))
    net.engine.run(net.engine.now_ps + 100 * PS_PER_MS, while_jobs=False)
    results = [net.engine.pair_result(pair) for pair in pairs]
    drops = int(net.engine.samples().ports["drops"][-1].sum())
    assert sum(each.packets - each.delivered for each in results) == drops
    # A segment is sent again because it was dropped, as a tail-loss probe, or after a timeout.
    probes, timeouts = (
        sum(getattr(net.engine.connection_result(pair), name) for pair in pairs) for name in ("probes", "timeouts")
    )
    resent = sum(each.resent for each in results)
    assert resent >= drops
    if not timeouts:
        assert resent <= drops + probes


@settings(max_examples=20, deadline=None)
@given(cases(most_loss=0.05))
def test_no_link_carries_more_than_its_rate(case: Any) -> None:
    net, _, _ = play(case)
    carried = np.diff(net.engine.samples().ports["tx_bytes"], axis=0)
    assert carried.max(initial=0) <= RATE * SAMPLE_US / 1e6 + 2 * PACKET


@settings(max_examples=20, deadline=None)
@given(cases())
def test_a_seed_gives_the_same_bytes(case: Any) -> None:
    (one, pairs, jobs), (again, _, _) = play(case), play(case)
    for job in jobs:
        assert one.engine.iterations(job).tobytes() == again.engine.iterations(job).tobytes()
    for pair in pairs:
        first, second = (DECLARATIONS.buffer(each.engine.connection_result(pair))[:] for each in (one, again))
        assert first == second
    for column, counts in one.engine.samples().ports.items():
        assert counts.tobytes() == again.engine.samples().ports[column].tobytes()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_flows_get_equal_shares_over_time(algorithm: str) -> None:
    marks = MARKS if algorithm == "dctcp" else {}
    # Were hosts' links no faster than the port, a host could fill it alone and lock out the other for good. And where
    # hosts take nearly as long each time, phases last: some flows meet the full queue more often than others.
    slow = {("s", "hc"): 2}
    net = Tree(STAR, sample_us=1000, queue_bytes=50 * PACKET, delay_ps=20 * PS_PER_US, slow=slow, **marks)
    plan = tcp_plan(algorithm, jitter_ps=10 * PS_PER_US)
    pairs = [net.connect(host, "hc", plan) for host in ("ha", "ha", "hb", "hb")]
    for pair in pairs:
        net.send_over(pair, 1 << 40)
    net.engine.run(1000 * PS_PER_MS, while_jobs=False)
    acked = np.array([net.engine.pair_result(pair).acked for pair in pairs])
    assert acked.sum() == pytest.approx(RATE / 2, rel=0.03)
    assert acked / acked.sum() == pytest.approx([1 / 4] * 4, rel=0.1)


def test_a_window_of_the_receiver_limits_what_is_under_way() -> None:
    net = Tree(STAR, delay_ps=100 * PS_PER_US)
    pair = net.connect("ha", "hc", tcp_plan(window_bytes=20 * PACKET, jitter_ps=0))
    net.send_over(pair, 1 << 40)
    net.engine.run(100 * PS_PER_MS, while_jobs=False)
    # 20 segments a round trip over four links of 100 us; every second segment is acknowledged.
    round_trip_us = 4 * 100 + 2 * 1 + 2 * 0.1 + 1
    assert net.engine.pair_result(pair).acked == pytest.approx(20 * PACKET * 100_000 / round_trip_us, rel=0.02)


def test_a_lost_tail_comes_with_the_probe_and_not_with_the_timeout() -> None:
    # The initial window finds a slow port with room for five: its last segments are lost.
    ends_us = []
    for probes in (0, 1):
        net = Tree(STAR, queue_bytes=5 * PACKET, slow={("s", "hc"): 50})
        plan = tcp_plan(has_tail_loss_probe=probes, rto_min_ps=200 * PS_PER_MS)
        pair = net.connect("ha", "hc", plan)
        job = net.send_over(pair, 10 * PACKET)
        net.engine.run()
        assert net.engine.connection_result(pair).probes == probes
        assert net.engine.connection_result(pair).timeouts == 1 - probes
        ends_us.append(net.end_us(job))
    assert ends_us[0] > 200_000
    assert ends_us[1] < 10_000


def test_a_window_begins_anew_after_an_idle_time() -> None:
    def window_later(restarts: int) -> int:
        net = Tree(STAR, delay_ps=50 * PS_PER_US)
        plan = tcp_plan(restarts_after_idle=restarts, tso_bytes=44 * PACKET)
        pair = net.connect("ha", "hc", plan)
        # Two iterations that send 1 MB each, 200 ms apart; the timeout is a little more than 10 ms.
        job = net.engine.add_job(make_structure("job_plan", workers=2, iterations=2, begins_ps=0, departs_ps=-1))
        net.engine.add_phase(job, 200 * PS_PER_MS)
        net.engine.add_phase(job, 1, [Message(pair, 0, 1, 1000 * PACKET)])
        net.engine.run(400 * PS_PER_MS, while_jobs=False)
        assert net.engine.connection_result(pair).cwnd > 100
        net.engine.run(net.engine.last_end_ps + 402 * PS_PER_MS + 20 * PS_PER_US, while_jobs=False)
        return int(net.engine.connection_result(pair).cwnd)

    windows = {restarts: window_later(restarts) for restarts in (0, 1)}
    assert windows[0] > 100
    assert windows[1] < windows[0]
