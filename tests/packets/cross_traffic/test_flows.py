# SPDX-License-Identifier: Apache-2.0
"""Cross traffic in the packet-level engine, held to cases worked out by hand and to properties of random flows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.packets.structures import FLOW, PS_PER_MS, make_structure
from roundabout.models.packets.transports import CNP_SCOPES, RETRANSMISSIONS
from tests.packets.networks import ALGORITHMS, NEVER_SLOWER, PACKET, PS_PER_US, RATE, Tree, change_plan, tcp_plan

pytestmark = pytest.mark.unit

LINE = [("ha", "s"), ("s", "hb")]
STAR = [("ha", "s"), ("hb", "s"), ("hc", "s")]
WAY_US = 4.0
"""A packet of 1 us over two links that each delay it by 1 us; each packet behind it comes 1 us later."""
HANDSHAKE_US = 4.4
"""Four times a frame of 100 bytes and a delay."""
LAST_ACK_US = 2.2


class Crossing:
    """A network with one cross traffic from `ha`, whose pools are those of the receivers."""

    def __init__(
        self, links: Sequence[tuple[str, str]] = LINE, receivers: Sequence[str] = ("hb",), **changed: Any
    ) -> None:
        options = {
            "most": 100,
            "is_fresh": False,
            "is_roce": False,
            "algorithm": "reno",
            "reaction": NEVER_SLOWER,
            **changed.pop("plan", {}),
        }
        self.net = Tree(links, **changed)
        self.engine = self.net.engine
        self.number = self.engine.add_traffic()
        self.pairs = []
        for receiver in receivers:
            if options["is_roce"]:
                pair = self.net.pair("ha", receiver, options["reaction"])
            else:
                tcp = {"jitter_ps": 0, **options.get("tcp", {})}
                pair = self.net.connect("ha", receiver, tcp_plan(options["algorithm"], **tcp))
            plan = options["reaction"] if options["is_roce"] else None
            self.engine.add_pool(self.number, pair, options["most"], is_fresh=options["is_fresh"], plan=plan)
            self.pairs.append(pair)

    def play(self, flows: Sequence[tuple[float, int, int]], until_us: float = 10_000) -> list[tuple[float, float]]:
        """Play flows of (start in us, bytes, pool); return each one's start and end in us."""
        rows = [(round(start * PS_PER_US), size, pool) for start, size, pool in flows]
        self.engine.set_flows(self.number, np.array(rows, FLOW))
        self.engine.run(round(until_us * PS_PER_US), while_jobs=False)
        return [tuple(each) for each in (self.records() / PS_PER_US).tolist()]

    def records(self) -> Any:
        found = self.engine.flow_records(self.number)
        return np.stack([found["start_ps"], found["end_ps"]], axis=1)


@pytest.mark.parametrize("is_roce", [False, True])
@pytest.mark.parametrize("packets", [1, 10, 20])
def test_a_flow_takes_its_packets_and_the_way_of_the_last_one(packets: int, is_roce: bool) -> None:
    [(start, end)] = Crossing(plan={"is_roce": is_roce}).play([(5, packets * PACKET, 0)])
    assert start == 5
    # TCP's ten segments at first last longer than the first acknowledgement takes, so nothing interrupts it.
    assert end == pytest.approx(5 + packets - 1 + WAY_US)


@pytest.mark.parametrize("is_roce", [False, True])
def test_a_fresh_connection_takes_a_round_trip_more(is_roce: bool) -> None:
    [(start, end)] = Crossing(plan={"is_fresh": True, "is_roce": is_roce}).play([(5, PACKET, 0)])
    assert (start, end) == (5, pytest.approx(5 + HANDSHAKE_US + WAY_US))


def test_a_reused_connection_keeps_its_window_and_a_fresh_one_does_not() -> None:
    flows = [(0, 30 * PACKET, 0), (100, 10 * PACKET, 0)]
    took = {}
    for is_fresh in (False, True):
        crossing = Crossing(plan={"is_fresh": is_fresh, "tcp": {"initial_window": 2}})
        start, end = crossing.play(flows)[1]
        took[is_fresh] = end - start
        assert crossing.engine.traffic_result(crossing.number).connections == 1
    assert took[False] == pytest.approx(9 + WAY_US)
    # Windows of 2 and 4 end 6.2 us apart, which is the round trip; the other four follow at once.
    assert took[True] == pytest.approx(HANDSHAKE_US + 2 * (WAY_US + LAST_ACK_US) + 3 + WAY_US)


def test_a_flow_takes_another_connection_while_one_is_busy() -> None:
    crossing = Crossing()
    found = crossing.play([(0, PACKET, 0), (0, PACKET, 0)])
    assert [start for start, _ in found] == [0, 0]
    assert [end for _, end in found] == pytest.approx([WAY_US, WAY_US + 1])
    assert crossing.engine.traffic_result(crossing.number).connections == 2


def test_a_flow_waits_for_a_connection_where_no_more_are_allowed() -> None:
    found = Crossing(plan={"most": 1}).play([(0, PACKET, 0), (0, PACKET, 0), (1, PACKET, 0)])
    begins = [0, WAY_US + LAST_ACK_US, 2 * (WAY_US + LAST_ACK_US)]
    assert [start for start, _ in found] == pytest.approx(begins)
    assert [end for _, end in found] == pytest.approx([begin + WAY_US for begin in begins])


@pytest.mark.parametrize(("scope", "cnps"), [("qp", 3), ("host", 1), ("port", 1)])
def test_each_connection_has_the_gap_between_cnps_of_its_set(scope: str, cnps: int) -> None:
    # Three connections at once queue at a port of half the rate, which marks all; within a gap there is one CNP each.
    reaction = change_plan(NEVER_SLOWER, cnp_gap_ps=1000 * PS_PER_MS, cnp_scope=CNP_SCOPES.index(scope))
    slow = {("s", "hb"): 2}
    plan = {"is_roce": True, "reaction": reaction}
    crossing = Crossing(slow=slow, plan=plan, kmin_bytes=0, kmax_bytes=0, pmax=1.0)
    crossing.play([(0, 50 * PACKET, 0)] * 3)
    assert crossing.engine.traffic_result(crossing.number).connections == 3
    assert crossing.engine.samples().hosts["cnps_sent"][-1].sum() == cnps


@pytest.mark.parametrize(("retransmission", "is_more"), [("selective_repeat", False), ("go_back_n", True)])
def test_each_connection_sends_again_as_its_set_says(retransmission: str, is_more: bool) -> None:
    reaction = change_plan(NEVER_SLOWER, retransmission=RETRANSMISSIONS.index(retransmission))
    crossing = Crossing(plan={"is_roce": True, "reaction": reaction}, loss=0.01)
    ends = [end for _, end in crossing.play([(0, 400 * PACKET, 0)] * 3, 100_000)]
    drops = crossing.engine.samples().ports["drops"][-1].sum()
    resent = crossing.engine.traffic_result(crossing.number).resent
    assert min(ends) > 0  # all have ended
    assert 0 < drops <= resent
    assert bool(resent > 3 * drops) is is_more


def test_each_pool_is_of_its_receiver() -> None:
    crossing = Crossing(STAR, ("hb", "hc"))
    crossing.play([(0, 3 * PACKET, 1), (50, 5 * PACKET, 0), (90, PACKET, 1)])
    assert [crossing.engine.pair_result(pair).acked for pair in crossing.pairs] == [5 * PACKET, 4 * PACKET]


def test_memory_does_not_grow_with_finished_flows() -> None:
    most = set()
    for count in (100, 50_000):
        crossing = Crossing(plan={"is_fresh": True})
        found = crossing.play([(20 * place, PACKET, 0) for place in range(count)], 20 * count + 100)
        assert [end - start for start, end in found] == pytest.approx([HANDSHAKE_US + WAY_US] * count)
        most.add((crossing.engine.traffic_result(crossing.number).connections, crossing.engine.max_packets))
    assert most == {(1, 1)}  # the packet, and then its acknowledgement


def streams(crossing: Crossing, number: int, most: int, share_of_link: float) -> None:
    plan = make_structure(
        "stream_plan",
        bytes_per_s=share_of_link * RATE,
        min_share=0.98,
        streams=number,
        max_streams=most,
        write_bytes=11 * PACKET,
        step_ps=PS_PER_MS,
        probe_ps=2 * PS_PER_MS,
    )
    crossing.engine.set_streams(crossing.number, plan)


@pytest.mark.parametrize("is_roce", [False, True])
def test_streams_send_no_faster_than_their_load(is_roce: bool) -> None:
    crossing = Crossing(plan={"is_roce": is_roce, "tcp": {"write_bytes": 10 * PACKET}})
    streams(crossing, 2, 5, 0.25)
    crossing.engine.run(20 * PS_PER_MS, while_jobs=False)
    found = crossing.engine.traffic_result(crossing.number)
    assert found.delivered == pytest.approx(0.25 * RATE * 0.02, abs=2 * 11 * PACKET)
    assert (found.streams, found.connections, found.resent) == (2, 2, 0)


def test_streams_become_more_while_their_load_is_not_reached() -> None:
    crossing = Crossing(slow={("s", "hb"): 2})
    streams(crossing, 1, 3, 0.75)
    for until_ms, number in ((1.9, 1), (3.9, 2), (4.1, 3), (20, 3)):
        crossing.engine.run(round(until_ms * PS_PER_MS), while_jobs=False)
        assert crossing.engine.traffic_result(crossing.number).streams == number


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 40))
    starts = sorted(draw(st.lists(st.floats(0, 500), min_size=count, max_size=count)))
    flows = [(start, draw(st.integers(1, 60_000)), draw(st.integers(0, 1))) for start in starts]
    is_roce = draw(st.booleans())
    return {
        "flows": flows,
        "port": {"queue_bytes": draw(st.sampled_from([-1, 5 * PACKET])), "loss": draw(st.sampled_from([0.0, 0.02]))},
        "plan": {
            "is_roce": is_roce,
            "is_fresh": draw(st.booleans()),
            "most": draw(st.integers(1, 4)),
            "algorithm": draw(st.sampled_from(ALGORITHMS)),
        },
        "job_bytes": draw(st.integers(1, 300_000)),
        "seed": draw(st.integers(0, 2**62)),
    }


def play_beside_a_job(case: dict[str, Any]) -> tuple[Crossing, int, int]:
    nic = {"seed": case["seed"], "timeout_ps": PS_PER_MS}
    crossing = Crossing(STAR, ("hb", "hc"), plan=case["plan"], nic=nic, sample_us=10_000_000, **case["port"])
    job, pair = crossing.net.send("hb", "hc", case["job_bytes"])
    crossing.play(case["flows"], 1)
    crossing.engine.run()
    crossing.engine.run(crossing.engine.now_ps + 200_000 * PS_PER_MS, while_jobs=False)
    return crossing, job, pair


@settings(max_examples=60, deadline=None)
@given(cases())
def test_all_bytes_of_flows_and_jobs_arrive_once(case: dict[str, Any]) -> None:
    crossing, job, pair = play_beside_a_job(case)
    result = crossing.engine.traffic_result(crossing.number)
    assert crossing.engine.completed(job) == 1
    assert crossing.engine.pair_result(pair).acked == case["job_bytes"]
    assert result.delivered == sum(size for _, size, _ in case["flows"])
    assert result.connections <= 2 * case["plan"]["most"]
    for (intended, size, _), (start, end) in zip(case["flows"], crossing.records() / PS_PER_US, strict=True):
        assert start >= intended - 1e-6
        assert end - start >= size / PACKET + (WAY_US - 1) - 1 + size % PACKET / PACKET - 1e-6


@settings(max_examples=15, deadline=None)
@given(cases())
def test_the_same_seed_gives_the_same_flows(case: dict[str, Any]) -> None:
    first, second = (play_beside_a_job(case)[0] for _ in range(2))
    assert first.records().tobytes() == second.records().tobytes()
    assert first.engine.packet_hops == second.engine.packet_hops


@settings(max_examples=30, deadline=None)
@given(cases())
def test_packets_of_cross_traffic_arrive_or_are_dropped(case: dict[str, Any]) -> None:
    case = {**case, "port": {**case["port"], "loss": 0.0}}  # else acknowledgements are dropped too
    crossing, _, pair = play_beside_a_job(case)
    traffic, job = crossing.engine.traffic_result(crossing.number), crossing.engine.pair_result(pair)
    drops = int(crossing.engine.samples().ports["drops"][-1].sum())
    assert traffic.packets + job.packets == traffic.arrived + job.delivered + drops
    assert traffic.packets >= sum(-(-size // PACKET) for _, size, _ in case["flows"])
