# SPDX-License-Identifier: Apache-2.0
"""Flows with a window, Swift and NSCC, over small networks: their rates, fairness, losses and retransmissions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.packets.structures import Structure
from roundabout.models.packets.transports import transport_values, window_plan
from roundabout.spec import Transport
from roundabout.spec.transports import registry
from tests.packets.networks import NIC, PACKET, PS_PER_US, Tree

pytestmark = pytest.mark.unit

GBPS = 8.0
ALGORITHMS = ("swift", "nscc")
HOSTS = [f"h{number}" for number in range(9)]
STAR = [(host, "s") for host in HOSTS]
MARKS: dict[str, Any] = {"kmin_bytes": 10_000, "kmax_bytes": 40_000, "pmax": 1.0}


def plan(name: str, **given: Any) -> Structure:
    declared = registry.find_declaration(name)
    assert declared
    defaults = {each.name: each.default for each in declared.parameters if each.chosen_by == "experiment"}
    transport = Transport.model_validate({"name": name, "stands_for": "RDMA", **defaults, **given})
    return window_plan(transport_values(transport, GBPS), transport)


def add_flow(tree: Tree, one: str, found: Structure, size: int, begin_us: int = 0) -> tuple[int, int]:
    """Add a flow of `size` bytes from a host to h0; return its job's number and its own."""
    other = "h0"
    hosts = (tree.hosts.index(one), tree.hosts.index(other))
    flow = tree.engine.add_window_flow(tree.route(one, other), tree.route(other, one), hosts, found)
    return tree.send_over(flow, size, begin_us), flow


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_flow_alone_takes_the_link(name: str) -> None:
    tree = Tree(STAR[:2], **MARKS)
    job, flow = add_flow(tree, "h1", plan(name), 5_000_000)
    tree.engine.run()
    assert tree.end_us(job) == pytest.approx(5000, rel=0.03)
    assert tree.engine.pair_result(flow).resent == 0


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("senders", [2, 8])
def test_equal_flows_share_a_link_equally(name: str, senders: int) -> None:
    tree = Tree(STAR, **MARKS)
    size = 4_000_000
    jobs = [add_flow(tree, host, plan(name), size)[0] for host in HOSTS[1 : senders + 1]]
    tree.engine.run()
    ends = np.array([tree.end_us(job) for job in jobs])
    assert ends.max() == pytest.approx(senders * size / 1000, rel=0.05)
    assert ends.min() > 0.7 * ends.max()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_late_flow_gets_its_share(name: str) -> None:
    tree = Tree(STAR[:3], **MARKS)
    add_flow(tree, "h1", plan(name), 20_000_000)
    job, _ = add_flow(tree, "h2", plan(name), 5_000_000, begin_us=2000)
    tree.engine.run()
    assert 5000 < tree.end_us(job) - 2000 < 15_000


def test_swift_keeps_the_delay_near_its_target() -> None:
    tree = Tree(STAR, sample_us=50)
    for host in HOSTS[1:5]:
        add_flow(tree, host, plan("swift", fs_range_us=0), 4_000_000)
    tree.engine.run()
    backlog = tree.engine.samples().ports["backlog_bytes"][:, tree.numbers["s", "h0"]]
    settled = backlog[len(backlog) // 2 : -20]
    # 26 us of target, of which 4.2 us are the empty path; a byte takes 1 ns.
    assert 5_000 < settled.mean() < 30_000


@given(
    name=st.sampled_from(ALGORITHMS),
    sizes=st.lists(st.integers(1, 300_000), min_size=1, max_size=6),
    loss=st.sampled_from([0.0, 0.01, 0.1]),
    room=st.sampled_from([(-1, 0), (3 * PACKET, 0), (3 * PACKET, 1), (50 * PACKET, 1)]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=12, deadline=None)
def test_each_byte_arrives_once_whatever_is_lost(
    name: str, sizes: list[int], loss: float, room: tuple[int, int], seed: int
) -> None:
    queue, trims = room
    tree = Tree(STAR, nic={**NIC, "seed": seed}, queue_bytes=queue, loss=loss, trims=trims, **MARKS)
    added = [add_flow(tree, host, plan(name), size) for host, size in zip(HOSTS[1:], sizes, strict=False)]
    tree.engine.run()
    tree.engine.run(tree.engine.now_ps + 10**6 * PS_PER_US, while_jobs=False)
    ports = tree.engine.samples().ports
    pairs = [tree.engine.pair_result(flow) for _, flow in added]
    assert [pair.acked for pair in pairs] == sizes
    assert all(pair.packets - pair.resent == -(-size // PACKET) for pair, size in zip(pairs, sizes, strict=True))
    assert sum(pair.packets - pair.delivered for pair in pairs) <= ports["drops"][-1].sum()
    assert (ports["backlog_bytes"][-1] == 0).all()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_trimmed_packets_alone_are_sent_again_without_a_timeout(name: str) -> None:
    tree = Tree(STAR, queue_bytes=10 * PACKET, trims=1, **MARKS)
    flows = [add_flow(tree, host, plan(name), 200_000)[1] for host in HOSTS[1:]]
    tree.engine.run()
    pairs = [tree.engine.pair_result(flow) for flow in flows]
    trimmed = tree.engine.samples().ports["drops"][-1].sum()
    assert [pair.acked for pair in pairs] == [200_000] * 8
    assert sum(pair.resent for pair in pairs) == trimmed > 50
    assert [tree.engine.window_result(flow).timeouts for flow in flows] == [0] * 8


@pytest.mark.parametrize("name", ALGORITHMS)
def test_nothing_is_sent_again_without_a_loss(name: str) -> None:
    tree = Tree(STAR, **MARKS)
    flows = [add_flow(tree, host, plan(name), 1_000_000)[1] for host in HOSTS[1:]]
    tree.engine.run()
    assert [tree.engine.pair_result(flow).resent for flow in flows] == [0] * 8


def test_swift_sends_less_than_a_packet_in_a_round_trip() -> None:
    tree = Tree([(host, "s") for host in HOSTS], sample_us=100, slow={("s", "h0"): 50})
    flows = [add_flow(tree, host, plan("swift"), 40_000)[1] for host in HOSTS[1:]]
    tree.engine.run()
    assert min(tree.engine.window_result(flow).cwnd_bytes for flow in flows) < PACKET
