# SPDX-License-Identifier: Apache-2.0
"""Switches of the packet-level engine, worked out by hand: shared buffers, weighted queues, and RED.

A packet takes 1 us on a link, and 1 us to get across it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from roundabout.models.packets import Samples
from roundabout.models.packets.structures import PS_PER_MS, make_structure
from tests.packets.networks import PACKET, PS_PER_US, RATE, Tree, tcp_plan

pytestmark = pytest.mark.unit

STAR = [("ha", "s"), ("hb", "s"), ("hc", "s")]


def share(
    net: Tree, switch: str, packets: int, *, alpha: float = 1.0, xon_offset: int = 0, headroom: int | None = None
) -> None:
    """Let a switch's ports share a buffer. Sizes are in packets; with a `headroom` it is lossless."""
    plan = make_structure(
        "buffer_plan",
        shared_bytes=packets * PACKET,
        xon_offset_bytes=xon_offset * PACKET,
        alpha=alpha,
        is_lossless=headroom is not None,
    )
    ports = [number for (sender, _), number in net.numbers.items() if sender == switch]
    net.engine.share_buffer(plan, dict.fromkeys(ports, (headroom or 0) * PACKET))


def column(found: Samples, name: str, port: int, queue: int) -> Any:
    """Return a column of one sampled queue."""
    return found.queues[name][:, found.places.index((port, queue))]


# --- shared buffers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "ports"), [(1.0, 1), (1.0, 3), (0.5, 2), (4.0, 2), (1 / 8, 3)])
def test_queues_that_are_all_full_share_a_buffer_by_the_dynamic_threshold(alpha: float, ports: int) -> None:
    # Each of n full queues holds T = alpha (B - n T), so T = alpha B / (1 + n alpha), and a share of the buffer stays
    # free (Choudhury and Hahne, equation 2).
    packets = 300
    links = [(f"h{role}{place}", "s") for place in range(ports) for role in ("a", "b", "c")]
    net = Tree(links)
    share(net, "s", packets, alpha=alpha)
    for place in range(ports):
        for role in ("a", "b"):
            net.send(f"h{role}{place}", f"hc{place}", 20_000 * PACKET)
    net.engine.run(5 * PS_PER_MS, while_jobs=False)
    found = net.engine.samples()
    expected = alpha * packets / (1 + ports * alpha)
    for place in range(ports):
        backlog = found.ports["backlog_bytes"][200:, net.numbers["s", f"hc{place}"]] / PACKET
        assert expected - 3 - alpha <= backlog.min() <= backlog.max() <= expected + 1 + alpha
        assert np.ptp(found.ports["drops"][200:, net.numbers["s", f"hc{place}"]]) > 100
    used = found.buffers["shared_bytes"][:, 0]
    assert used[200:].max() / PACKET == pytest.approx(ports * expected, abs=2 * ports)
    assert found.buffers["most_bytes"][-1, 0] <= packets * PACKET
    assert (found.buffers["headroom_bytes"] == 0).all()


def test_a_queue_that_comes_later_gets_its_part_of_the_buffer() -> None:
    # The first queue holds alpha B / (1 + alpha) = 150 packets by itself, and both 100 together.
    links = [(f"h{role}{place}", "s") for place in range(2) for role in ("a", "b", "c")]
    net = Tree(links)
    share(net, "s", 300)
    for place, begin_us in enumerate((0, 2000)):
        for role in ("a", "b"):
            net.send(f"h{role}{place}", f"hc{place}", 20_000 * PACKET, begin_us=begin_us)
    net.engine.run(5 * PS_PER_MS, while_jobs=False)
    first, second = (net.engine.samples().ports["backlog_bytes"][:, net.numbers["s", f"hc{k}"]] for k in range(2))
    assert np.median(first[100:200]) / PACKET == pytest.approx(150, abs=2)
    assert np.median(first[300:]) / PACKET == pytest.approx(100, abs=2)
    assert np.median(second[300:]) / PACKET == pytest.approx(100, abs=2)


def test_pfc_pauses_by_a_dynamic_threshold_and_drops_nothing() -> None:
    # Two links into one port: h packets of each wait under the threshold, so XOFF comes at h = alpha (B - 2 h), which
    # is 40 for alpha = 1 and B = 120. XON comes an offset of 30 below the threshold, at h = (alpha B - 30) / (1 + 2
    # alpha) = 30. The rest is as with fixed thresholds (test_engine.py): a share overshoots by 3 us of growth, half a
    # packet a microsecond each, now into the headroom, and undershoots by 3 us of draining.
    net = Tree(STAR, sample_us=1)
    share(net, "s", 120, xon_offset=30, headroom=6)
    for host in ("ha", "hb"):
        net.send(host, "hc", 6000 * PACKET)
    net.engine.run()
    samples = net.engine.samples()
    found, busy = samples.ports, slice(500, 10_500)
    assert found["drops"][-1].sum() == 0
    nic, port = net.numbers["ha", "s"], net.numbers["s", "hc"]
    most, least = 40 + 1.5, 30 - 1.5
    assert max(found["backlog_bytes"][busy, port]) == pytest.approx(2 * most * PACKET, abs=3 * PACKET)
    assert min(found["backlog_bytes"][busy, port]) == pytest.approx(2 * least * PACKET, abs=3 * PACKET)
    assert 0 < samples.buffers["headroom_bytes"].max() <= 2 * 3 * PACKET
    assert samples.buffers["shared_bytes"].max() <= (2 * 40 + 1) * PACKET  # the last one finds 41 packets free
    period_us = 2 * (most - least) / 0.5
    assert np.ptp(found["pauses"][busy, nic]) == pytest.approx(10_000 / period_us, rel=0.15)
    assert np.ptp(found["paused_ps"][busy, nic]) / PS_PER_US == pytest.approx(10_000 / 2, rel=0.03)
    assert np.ptp(found["tx_bytes"][busy, port]) == pytest.approx(10_000 * PACKET, abs=2 * PACKET)


def test_a_trunk_paused_by_a_dynamic_threshold_holds_up_an_innocent_flow() -> None:
    # As with fixed thresholds (test_engine.py): hb's receiver takes a quarter, the trunk that ha's packets share is
    # paused until it carries a quarter for each, and ha's receiver is idle for three quarters of the time.
    links = [("ha", "s"), ("hb", "s"), ("s", "t"), ("hc", "t"), ("hd", "t")]
    net = Tree(links, slow={("t", "hc"): 4})
    for switch in ("s", "t"):
        share(net, switch, 80, xon_offset=15, headroom=8)
    for one, other in (("ha", "hd"), ("hb", "hc")):
        net.send(one, other, 20_000 * PACKET)
    net.engine.run(8 * PS_PER_MS, while_jobs=False)
    found = net.engine.samples()
    assert found.ports["drops"][-1].sum() == 0
    assert found.ports["pauses"][-1, net.numbers["s", "t"]] > 50
    innocent = np.ptp(found.ports["tx_bytes"][200:800, net.numbers["t", "hd"]]) / (RATE * 6e-3)
    assert innocent == pytest.approx(1 / 4, abs=0.02)
    # The trunk alone fills t's buffer: h = alpha (B - h) = 40.
    assert found.buffers["shared_bytes"][:, 1].max() == pytest.approx(40 * PACKET, abs=2 * PACKET)


@pytest.mark.parametrize(("packets", "alpha", "headroom"), [(1, 0.5, 0), (1, 0.5, 1), (3, 1.0, 0)])
def test_a_link_that_was_paused_goes_on_however_little_room_there_is(packets: int, alpha: float, headroom: int) -> None:
    net = Tree(STAR)
    share(net, "s", packets, alpha=alpha, headroom=headroom)
    jobs = [net.send(host, "hc", 300 * PACKET)[0] for host in ("ha", "hb")]
    net.engine.run()
    assert [net.engine.completed(job) for job in jobs] == [1, 1]


def test_too_little_headroom_drops_what_comes_after_xoff() -> None:
    # Of a link's three packets after XOFF (by half its rate to the queue) one has no room.
    net = Tree(STAR)
    share(net, "s", 120, xon_offset=30, headroom=1)
    for host in ("ha", "hb"):
        net.send(host, "hc", 6000 * PACKET)
    net.engine.run()
    assert net.engine.samples().ports["drops"][-1, net.numbers["s", "hc"]] > 0


# --- scheduling ------------------------------------------------------------------------------------------------------


def weighted(quanta: Sequence[int], loads: Sequence[int], begin_us: Sequence[int] | None = None) -> Samples:
    """Return samples of a port to which a host for each queue sends so many packets."""
    links = [(f"h{place}", "s") for place in range(len(loads))] + [("hz", "s")]
    net = Tree(links)
    net.engine.weigh_queues(net.numbers["s", "hz"], quanta)
    net.engine.sample_queues(range(len(loads)))
    for place, packets in enumerate(loads):
        begin = begin_us[place] if begin_us else 0
        net.send(f"h{place}", "hz", packets * PACKET, begin_us=begin, priority=place)
    net.engine.run(4 * PS_PER_MS, while_jobs=False)
    return net.engine.samples()


@pytest.mark.parametrize("quanta", [(1000, 1000), (3000, 1000), (2500, 1700), (5000, 1100), (300, 100)])
def test_full_queues_share_a_port_by_their_quanta(quanta: tuple[int, int]) -> None:
    # Both queues are full from 200 us on. In any interval each gets whole rounds of its quantum, but for one round and
    # one packet (Shreedhar and Varghese, theorem 2).
    found = weighted(quanta, (8000, 8000))
    port = found.places[-1][0]
    sent = [np.diff(column(found, "tx_bytes", port, queue)[20:380]) for queue in range(2)]
    assert sum(map(sum, sent)) == pytest.approx(RATE * 3.59e-3, abs=2 * PACKET)  # no time is lost
    for end in (10, 100, len(sent[0])):
        rounds = [sum(each[:end]) / quantum for each, quantum in zip(sent, quanta, strict=True)]
        assert abs(rounds[0] - rounds[1]) <= 1 + sum(PACKET / quantum for quantum in quanta)
    assert sum(sent[0]) / sum(sent[1]) == pytest.approx(quanta[0] / quanta[1], rel=0.01)


def test_an_empty_queue_leaves_the_port_to_others_and_saves_no_credit() -> None:
    # Queue 1, with three quarters, begins at 2 ms: until then queue 0 has the port alone, and from then on a quarter.
    found = weighted((1000, 3000), (8000, 8000), (0, 2000))
    port = found.places[-1][0]
    sent = column(found, "tx_bytes", port, 0)
    assert sent[199] - sent[20] == pytest.approx(1.79e-3 * RATE, abs=2 * PACKET)
    assert sent[399] - sent[210] == pytest.approx(1.89e-3 * RATE / 4, abs=4 * PACKET)


def test_queues_above_the_weighted_ones_come_first() -> None:
    # Queue 2 is not weighted: its 500 packets pass at line rate, though the others wait.
    found = weighted((1000, 1000), (8000, 8000, 500), (0, 0, 1000))
    port = found.places[-1][0]
    above = column(found, "tx_bytes", port, 2)
    assert above[99] == 0
    assert above[151] == 500 * PACKET
    below = [column(found, "tx_bytes", port, queue) for queue in range(2)]
    assert all(each[149] - each[102] <= 2 * PACKET for each in below)
    assert sum(each[399] - each[152] for each in below) == pytest.approx(2.47e-3 * RATE, abs=2 * PACKET)


def test_a_paused_queue_leaves_its_turn_to_others() -> None:
    # The trunk's queue 0 is paused by t, whose port to hc carries a quarter; queue 1 to hd gets all the rest of the
    # trunk, although both have the same quantum.
    links = [("ha", "s"), ("hb", "s"), ("s", "t"), ("hc", "t"), ("hd", "t")]
    net = Tree(links, slow={("t", "hc"): 4}, xoff_bytes=40 * PACKET, xon_bytes=20 * PACKET, buffer_bytes=60 * PACKET)
    net.engine.weigh_queues(net.numbers["s", "t"], (PACKET, PACKET))
    net.engine.sample_queues((0, 1))
    net.send("ha", "hd", 20_000 * PACKET, priority=1)
    net.send("hb", "hc", 20_000 * PACKET, priority=0)
    net.engine.run(8 * PS_PER_MS, while_jobs=False)
    found = net.engine.samples()
    assert found.ports["drops"][-1].sum() == 0
    trunk = net.numbers["s", "t"]
    shares = [np.ptp(column(found, "tx_bytes", trunk, queue)[200:800]) / (RATE * 6e-3) for queue in range(2)]
    assert shares == pytest.approx([1 / 4, 3 / 4], abs=0.02)
    assert column(found, "pauses", trunk, 0)[-1] == found.ports["pauses"][-1, trunk] > 30
    assert column(found, "pauses", trunk, 1)[-1] == 0


# --- RED -------------------------------------------------------------------------------------------------------------


def standing(weight: float, kept: int, **marks: Any) -> tuple[Samples, int]:
    """Return samples of a port where so many packets wait always: what comes at line rate finds them."""
    net = Tree(STAR, sample_us=10, **marks)
    port = net.numbers["s", "hc"]
    net.engine.use_red(port, weight)
    net.engine.sample_queues((0,))
    net.send("ha", "hc", 40_000 * PACKET)
    net.send("hb", "hc", kept * PACKET)
    net.engine.run(40 * PS_PER_MS, while_jobs=False)
    return net.engine.samples(), port


def test_red_averages_the_queue_that_packets_find() -> None:
    # After k packets that found q, the average is q (1 - (1 - w)^k). A packet comes each microsecond.
    weight, kept = 0.002, 50
    found, port = standing(weight, kept, kmin_bytes=10**9, kmax_bytes=10**9, pmax=1.0)
    backlog, average = (column(found, name, port, 0) for name in ("backlog_bytes", "average_bytes"))
    q = backlog[500]
    assert q == pytest.approx(kept * PACKET, abs=PACKET)
    assert (backlog[20:3900] == q).all()
    first = average[20]
    for sample in (40, 70, 120, 220, 520):
        expected = q - (q - first) * (1 - weight) ** (10 * (sample - 20))
        assert average[sample] == pytest.approx(expected, abs=PACKET)
    # No link carries packets any more, and nothing has come that would lower the average.
    assert average[3900] == pytest.approx(q, abs=PACKET)


def test_reds_average_falls_while_the_port_is_idle_as_if_packets_had_found_it_empty() -> None:
    # 1000 packets' time without any lowers the average by (1 - w)^1000.
    weight, idle_us = 0.001, 1000
    net = Tree(STAR, kmin_bytes=10**9, kmax_bytes=10**9, pmax=1.0)
    port = net.numbers["s", "hc"]
    net.engine.use_red(port, weight)
    net.engine.sample_queues((0,))
    for host in ("ha", "hb"):
        net.send(host, "hc", 500 * PACKET)
    net.send("ha", "hc", PACKET, begin_us=1003 + idle_us)  # the queue is gone at 1003 us
    net.engine.run(3 * PS_PER_MS, while_jobs=False)
    average = column(net.engine.samples(), "average_bytes", port, 0)
    assert average[150] == average[100] > 50 * PACKET
    assert average[-1] / average[150] == pytest.approx((1 - weight) ** (idle_us + 2), rel=0.01)


@pytest.mark.parametrize(("kept", "pmax"), [(30, 0.02), (50, 0.1), (60, 0.5)])
def test_reds_marks_follow_the_formula(kept: int, pmax: float) -> None:
    # p_b = max_p (avg - min) / (max - min); signals are uniformly 1 to 1 / p_b packets apart, so that there is one in
    # (1 / p_b + 1) / 2 packets.
    low, high = 20, 70
    marks = {"kmin_bytes": low * PACKET, "kmax_bytes": high * PACKET, "pmax": pmax}
    found, port = standing(0.01, kept, **marks)
    window = slice(500, 3900)
    average = column(found, "average_bytes", port, 0)[window].mean() / PACKET
    assert average == pytest.approx(kept, abs=1.5)
    p = pmax * (average - low) / (high - low)
    counted = np.ptp(column(found, "marks", port, 0)[window])
    assert counted / np.ptp(found.ports["tx_packets"][window, port]) == pytest.approx(2 / (1 / p + 1), rel=0.06)
    assert found.ports["drops"][-1].sum() == 0


def test_red_signals_every_packet_above_its_upper_threshold() -> None:
    found, port = standing(0.01, 50, kmin_bytes=5 * PACKET, kmax_bytes=20 * PACKET, pmax=0.1)
    marks, sent = (found.ports[name][:, port] for name in ("marks", "tx_packets"))
    assert np.ptp(marks[500:3900]) == np.ptp(sent[500:3900])


def test_red_drops_what_cannot_be_marked() -> None:
    # TCP without ECN through a port that is ten times slower: RED keeps its average between the thresholds.
    net = Tree([("ha", "s"), ("hc", "s")], slow={("s", "hc"): 10}, kmin_bytes=10_000, kmax_bytes=60_000, pmax=0.1)
    port = net.numbers["s", "hc"]
    net.engine.use_red(port, 0.01)
    net.engine.sample_queues((0,))
    connection = net.connect("ha", "hc", tcp_plan("reno"))
    job = net.send_over(connection, 20_000 * PACKET)
    net.engine.run()
    found = net.engine.samples()
    assert net.engine.completed(job) == 1
    assert found.ports["marks"][-1, port] == 0
    drops, average = found.ports["drops"][-1, port], column(found, "average_bytes", port, 0)
    assert drops > 0
    busy = average[len(average) // 4 : -len(average) // 4]
    assert 10_000 < np.median(busy) < 60_000
