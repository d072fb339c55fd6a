# SPDX-License-Identifier: Apache-2.0
"""The engine on networks worked out by hand: a packet takes 1 us on a link, and 1 us to get across it."""

import numpy as np
import pytest

from roundabout.models.packets import Message
from roundabout.models.packets.structures import PS_PER_MS, make_structure
from tests.packets.networks import NEVER_SLOWER, PACKET, PS_PER_US, RATE, Tree, change_plan, tcp_plan

pytestmark = pytest.mark.unit

STAR = [("ha", "s"), ("hb", "s"), ("hc", "s")]


def test_a_packet_is_stored_and_forwarded_at_each_hop():
    net = Tree(STAR)
    job, _ = net.send("ha", "hc", 10 * PACKET)
    net.engine.run()
    # The first packet takes 2 us over each of two links; nine more follow, a microsecond each.
    assert net.end_us(job) == pytest.approx(2 + 2 + 9, abs=0.01)
    acknowledged_us = net.engine.iterations(job)[0][-1]["end_ps"] / PS_PER_US
    assert acknowledged_us == pytest.approx(13 + 2 * (0.1 + 1), abs=0.01)


@pytest.mark.parametrize(
    ("payload_gbps", "size", "took_ns"),
    [
        (43, 1, (1 + 82) * 8 / 50),
        (43, 64, (64 + 82) * 8 / 50),
        (43, 502, (502 + 82) * 8 / 50),
        (43, 504, 504 * 8 / 43),
        (43, 1024, 1024 * 8 / 43),
        (47, 1024, (1024 + 82) * 8 / 50),  # of a line of 50 Gbit/s its payload can have 46.3 at most
    ],
)
def test_a_message_takes_its_headers_time_too(payload_gbps, size, took_ns):
    """58 bytes in its frame, and 24 around it, at the line rate; all of it within what the payload rate allows."""
    rates = {"payload_bytes_per_s": payload_gbps * 1e9 / 8, "line_bytes_per_s": 50e9 / 8, "delay_ps": 0}
    net = Tree([("ha", "hb")], nic={"payload_bytes": 1024, "header_bytes": 58, "around_bytes": 24}, **rates)
    job, _ = net.send("ha", "hb", size)
    net.engine.run()
    assert net.end_us(job) * 1000 == pytest.approx(took_ns, abs=0.002)


def test_two_senders_share_a_port_and_queue_there():
    net = Tree(STAR)
    jobs = [net.send(host, "hc", 500 * PACKET)[0] for host in ("ha", "hb")]
    net.engine.run()
    ends = [net.end_us(job) for job in jobs]
    assert max(ends) == pytest.approx(2 + 2 + 999, abs=0.01)
    assert abs(ends[0] - ends[1]) == pytest.approx(1, abs=0.01)
    backlog = net.engine.samples().ports["backlog_bytes"][:, net.numbers["s", "hc"]]
    assert max(backlog) == pytest.approx(500 * PACKET, rel=0.02)


def test_a_higher_priority_goes_first():
    net = Tree(STAR)
    low, _ = net.send("ha", "hc", 500 * PACKET)
    high, _ = net.send("hb", "hc", 100 * PACKET, begin_us=50, priority=3)
    net.engine.run()
    assert net.end_us(high) == pytest.approx(50 + 4 + 99, abs=1.01)
    assert net.end_us(low) == pytest.approx(4 + 499 + 100, abs=1.01)


def test_pfc_pauses_senders_by_the_numbers_and_drops_nothing():
    # Each sender's share of the queue grows by half a packet a microsecond while it sends, and falls as fast while it
    # is paused. XOFF goes out at 41 packets, XON at 10. Either takes 1.1 us to the sender, whose packets take 2 us to
    # the queue: the share overshoots by 3 us of growth and undershoots by 3 us of draining.
    net = Tree(STAR, sample_us=1, xoff_bytes=40 * PACKET, xon_bytes=10 * PACKET, buffer_bytes=44 * PACKET)
    for host in ("ha", "hb"):
        net.send(host, "hc", 6000 * PACKET)
    net.engine.run()
    found = net.engine.samples().ports
    assert found["drops"][-1].sum() == 0
    nic, port = net.numbers["ha", "s"], net.numbers["s", "hc"]
    busy = slice(500, 10_500)
    most, least = 41 + 1.5, 10 - 1.5
    assert max(found["backlog_bytes"][busy, port]) == pytest.approx(2 * most * PACKET, abs=2 * PACKET)
    assert min(found["backlog_bytes"][busy, port]) == pytest.approx(2 * least * PACKET, abs=2 * PACKET)
    period_us = 2 * (most - least) / 0.5
    assert np.ptp(found["pauses"][busy, nic]) == pytest.approx(10_000 / period_us, abs=3)
    # It sends half of the time, and gets half of the port, which is never idle.
    assert np.ptp(found["paused_ps"][busy, nic]) / PS_PER_US == pytest.approx(10_000 / 2, rel=0.03)
    assert np.ptp(found["tx_bytes"][busy, nic]) == pytest.approx(5000 * PACKET, rel=0.02)
    assert np.ptp(found["tx_bytes"][busy, port]) == pytest.approx(10_000 * PACKET, abs=2 * PACKET)


def test_a_paused_trunk_holds_up_an_innocent_flow():
    # ha sends to hd and hb to hc, whose link carries a quarter, over one trunk. Without PFC the trunk is shared evenly,
    # and what hb sends too much waits behind it. With PFC the trunk is paused until it carries a quarter for hb, and
    # then a quarter for ha, whose packets wait in the same queue.
    links = [("ha", "s"), ("hb", "s"), ("s", "t"), ("hc", "t"), ("hd", "t")]

    def innocent_share(xoff_bytes: int) -> float:
        limits = {"xoff_bytes": xoff_bytes, "xon_bytes": 20 * PACKET, "buffer_bytes": 60 * PACKET}
        net = Tree(links, slow={("t", "hc"): 4}, **limits if xoff_bytes > 0 else {})
        for one, other in (("ha", "hd"), ("hb", "hc")):
            net.send(one, other, 20_000 * PACKET)
        net.engine.run(8 * PS_PER_MS, while_jobs=False)
        found = net.engine.samples().ports
        assert found["drops"][-1].sum() == 0
        return float(np.ptp(found["tx_bytes"][200:800, net.numbers["t", "hd"]]) / (RATE * 6e-3))

    assert innocent_share(-1) == pytest.approx(1 / 2, abs=0.02)
    assert innocent_share(40 * PACKET) == pytest.approx(1 / 4, abs=0.02)


def test_what_is_dropped_is_sent_again_from_there_on():
    net = Tree(STAR, queue_bytes=20 * PACKET)
    sent = [net.send(host, "hc", 2000 * PACKET, begin_us=begin) for host, begin in (("ha", 0), ("hb", 700))]
    net.engine.run()
    found = net.engine.samples()
    assert found.ports["drops"][-1].sum() > 0
    results = [net.engine.pair_result(pair) for _, pair in sent]
    assert sum(each.packets - each.delivered for each in results) == found.ports["drops"][-1].sum()
    assert any(each.resent > 0 for each in results)
    assert all(net.engine.completed(job) == 1 for job, _ in sent)


def test_a_lost_tail_comes_after_the_timeout():
    # Ten packets of a burst from each of two hosts; the queue holds five, so the last ones are lost.
    net = Tree(STAR, queue_bytes=5 * PACKET)
    jobs = [net.send(host, "hc", 30 * PACKET)[0] for host in ("ha", "hb")]
    net.engine.run()
    assert all(net.engine.completed(job) == 1 for job in jobs)
    assert max(net.end_us(job) for job in jobs) < 50_000


def test_marks_cut_rates_at_most_once_a_gap():
    gap_us = 50
    plan = change_plan(NEVER_SLOWER, R_min=1, cnp_gap_ps=gap_us * PS_PER_US, byte_counter_bytes=0)
    net = Tree(STAR, kmin_bytes=5 * PACKET, kmax_bytes=5 * PACKET, pmax=1.0)
    pairs = [net.send(host, "hc", 40_000 * PACKET, plan=plan)[1] for host in ("ha", "hb")]
    net.engine.run(20 * PS_PER_MS, while_jobs=False)
    hosts = net.engine.samples().hosts
    assert hosts["cnps_sent"][-1].sum() == hosts["cnps_handled"][-1].sum() > 0
    for pair in pairs:
        found = net.engine.pair_result(pair)
        assert 0 < found.cnps <= 20_000 / gap_us + 1
        assert found.marked >= found.cnps


def test_a_slow_flow_speeds_up_by_its_timers_and_not_at_its_next_packet():
    # At the lowest rate a packet takes 1 ms; ten increases lead to the line rate within 50 us.
    rates = {"R_min": int(RATE) // 1000, "R_AI": int(RATE) // 5, "R_HAI": int(RATE) // 5}
    plan = change_plan(NEVER_SLOWER, **rates, T_ps=5 * PS_PER_US, F=1, cnp_gap_ps=200 * PS_PER_US)
    net = Tree(STAR, kmin_bytes=2 * PACKET, kmax_bytes=2 * PACKET, pmax=1.0)
    jobs = [net.send(host, "hc", 1000 * PACKET, plan=plan)[0] for host in ("ha", "hb")]
    net.engine.run()
    assert max(net.end_us(job) for job in jobs) < 4000


def test_a_ring_sends_no_further_ahead_than_it_has_received():
    net = Tree(STAR)
    size = 3000 * PACKET
    job = net.engine.add_job(make_structure("job_plan", workers=3, iterations=2, begins_ps=0, departs_ps=-1))
    pairs = [net.pair(one, other) for one, other in (("ha", "hb"), ("hb", "hc"), ("hc", "ha"))]
    messages = [Message(pair, k, (k + 1) % 3, size, size // 4, ((k - 1) % 3,)) for k, pair in enumerate(pairs)]
    net.engine.add_phase(job, 1 * PS_PER_MS)
    net.engine.add_phase(job, 6 * PS_PER_MS, messages)
    net.engine.run()
    found = net.engine.iterations(job)
    assert (found["end_ps"] - found["start_ps"] - 7 * PS_PER_MS).max() < 10 * PS_PER_US
    assert (found["compute_end_ps"] - found["start_ps"] == PS_PER_MS).all()


@pytest.mark.parametrize("is_tcp", [False, True])
def test_a_sum_goes_on_to_two_others_no_earlier_than_its_slower_part(is_tcp):
    """hc adds what ha and hb send, and hb's link carries a fourth: the sum is at hd and he when hb's 4 ms are over."""
    net = Tree([*STAR, ("hd", "s"), ("he", "s")], slow={("hb", "s"): 4})
    size = 1000 * PACKET
    job = net.engine.add_job(make_structure("job_plan", workers=5, iterations=2, begins_ps=0, departs_ps=-1))
    ends = [("ha", "hc"), ("hb", "hc"), ("hc", "hd"), ("hc", "he")]
    pairs = [net.connect(*each, tcp_plan()) if is_tcp else net.pair(*each) for each in ends]
    ranks, feeders = [(0, 2), (1, 2), (2, 3), (2, 4)], [(), (), (0, 1), (0, 1)]
    messages = [Message(pair, *each, size, 0, fed) for pair, each, fed in zip(pairs, ranks, feeders, strict=True)]
    net.engine.add_phase(job, 1 * PS_PER_MS, messages)
    net.engine.run()
    found = net.engine.iterations(job)
    for rank in (3, 4):
        took_ms = (found[rank]["end_ps"] - found[rank]["start_ps"]) / PS_PER_MS
        assert took_ms.min() > 4
        assert took_ms.max() < (4.4 if is_tcp else 4.02)


def test_workers_of_one_host_use_no_link():
    net = Tree(STAR)
    job = net.engine.add_job(make_structure("job_plan", workers=2, iterations=3, begins_ps=0, departs_ps=-1))
    pair = net.engine.add_pair([], [], (0, 0), NEVER_SLOWER)
    net.engine.add_phase(job, 1 * PS_PER_MS, [Message(pair, 0, 1, 7777)])
    net.engine.run()
    assert net.engine.now_ps == 3 * PS_PER_MS
    assert net.engine.packet_hops == 0


def test_a_job_departs_in_the_middle_of_an_iteration():
    net = Tree(STAR)
    job = net.engine.add_job(
        make_structure("job_plan", workers=2, iterations=100, begins_ps=0, departs_ps=5 * PS_PER_MS)
    )
    pair = net.pair("ha", "hc")
    net.engine.add_phase(job, 2 * PS_PER_MS, [Message(pair, 0, 1, 1000 * PACKET)])
    net.engine.run()
    assert net.engine.last_end_ps == 5 * PS_PER_MS
    assert net.engine.completed(job) == 2


def test_a_timetable_holds_iterations_to_its_instants():
    net = Tree(STAR)
    held = {"shift_ps": 3 * PS_PER_MS, "period_ps": 10 * PS_PER_MS, "threshold_ps": PS_PER_MS, "late_ps": 2 * PS_PER_MS}
    job = net.engine.add_job(
        make_structure("job_plan", workers=2, iterations=4, begins_ps=3 * PS_PER_MS, departs_ps=-1, **held)
    )
    pair = net.pair("ha", "hc")
    net.engine.add_phase(job, 4 * PS_PER_MS, [Message(pair, 0, 1, 1000 * PACKET)])
    net.engine.run()
    found = net.engine.iterations(job)[0]
    begins_ms = (found["start_ps"] + found["delay_ps"]) / PS_PER_MS
    assert begins_ms == pytest.approx([3, 13, 23, 33], abs=0.01)
