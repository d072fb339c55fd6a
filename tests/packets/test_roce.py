# SPDX-License-Identifier: Apache-2.0
"""RoCE NICs of the packet-level engine: reaction points, notification points and retransmission, worked out by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from roundabout.core.errors import RoundaboutError
from roundabout.models.fluid.mean_field_dcqcn import find_refusal
from roundabout.models.packets.structures import FLOW, PS_PER_MS, make_structure
from roundabout.models.packets.transports import CNP_SCOPES, reaction_plan, transport_values
from roundabout.spec import Transport, TrialSpec
from roundabout.testbeds.fluid.provider import create_provider as create_fluid
from roundabout.testbeds.lab.provider import create_provider as create_lab
from tests.packets.networks import NEVER_SLOWER, PACKET, PS_PER_US, RATE, Tree, change_plan, tcp_plan
from tests.packets.roce_jobs import STAR, dcqcn
from tests.trials import build_trial

pytestmark = pytest.mark.unit

GO_BACK_N, SELECTIVE_REPEAT = 0, 1


@pytest.mark.parametrize(
    ("transport", "clamps"),
    [(dcqcn(), 0), (dcqcn("nvidia"), 0), (dcqcn("sigcomm15"), 1), (dcqcn("nvidia", clamp_target=1), 1)],
)
def test_reaction_points_get_the_rule_of_their_set(transport: Transport, clamps: int) -> None:
    assert reaction_plan(transport_values(transport, 43.0)).clamp_target == clamps


@pytest.mark.parametrize(("scope", "gaps", "wait_us"), [("qp", 3, 4), ("host", 2, 2), ("port", 1, 1)])
def test_a_receiver_keeps_the_gap_for_each_queue_pair_host_or_port(scope: str, gaps: int, wait_us: int) -> None:
    # Two queue pairs of ha and one of hb fill hc's port, whose queue marks all from 20 us on. A packet leaves it each
    # microsecond: one of any pair within 4 us, of a host within 2 us.
    gap_us = 50
    plan = change_plan(NEVER_SLOWER, cnp_gap_ps=gap_us * PS_PER_US, cnp_scope=CNP_SCOPES.index(scope))
    net = Tree(STAR, kmin_bytes=5 * PACKET, kmax_bytes=5 * PACKET, pmax=1.0)
    for host in ("ha", "ha", "hb"):
        net.send(host, "hc", 40_000 * PACKET, plan=plan)
    net.engine.run(10 * PS_PER_MS, while_jobs=False)
    hosts = net.engine.samples().hosts
    sent = hosts["cnps_sent"][-1].sum()
    assert gaps * (9_980 / (gap_us + wait_us) - 1) <= sent <= gaps * (10_000 / gap_us + 1)
    assert hosts["marked"][-1].sum() > 9_900


def one_loss(retransmission: int, loss: float = 0.002, seed: int = 1) -> tuple[Tree, int, int]:
    """Return a network in which ha has sent 500 packets to hc, and the numbers of its job and queue pair."""
    net = Tree(STAR, loss=loss, nic={"seed": seed})
    job, pair = net.send("ha", "hc", 500 * PACKET, plan=change_plan(NEVER_SLOWER, retransmission=retransmission))
    net.engine.run()
    return net, job, pair


@pytest.mark.parametrize(("retransmission", "resent"), [(SELECTIVE_REPEAT, 1), (GO_BACK_N, 8)])
def test_a_drop_costs_one_packet_or_all_that_were_sent_since(retransmission: int, resent: int) -> None:
    # The packet after the lost one arrives 1 + 2 + 2 us after that was sent, and the NACK 2 * (0.1 + 1) us later, when
    # seven more have gone: eight are sent again, or one.
    net, job, pair = one_loss(retransmission)
    found = net.engine.pair_result(pair)
    assert net.engine.samples().ports["drops"][-1].sum() == 1
    assert (found.resent, found.packets, found.delivered) == (resent, 500 + resent, 499 + resent)
    assert net.end_us(job) == pytest.approx(2 + 2 + 499 + resent, abs=0.01)


def test_a_lost_tail_is_repeated_after_the_timeout_alone() -> None:
    # Of 30 packets of each of two hosts the queue drops the last ones. Nothing behind them shows it, nor of what has
    # arrived since the last NACK, which comes twice.
    net = Tree(STAR, queue_bytes=5 * PACKET)
    plan = change_plan(NEVER_SLOWER, retransmission=SELECTIVE_REPEAT)
    sent = [net.send(host, "hc", 30 * PACKET, plan=plan) for host in ("ha", "hb")]
    net.engine.run()
    net.engine.run(net.engine.last_end_ps + PS_PER_MS, while_jobs=False)
    results = [net.engine.pair_result(pair) for _, pair in sent]
    drops = net.engine.samples().ports["drops"][-1].sum()
    assert all(net.engine.completed(job) == 1 for job, _ in sent)
    assert sum(each.packets - each.delivered for each in results) == drops > 0
    assert 0 <= sum(each.resent for each in results) - drops == sum(each.delivered for each in results) - 60 < 10
    assert 10_000 < max(net.end_us(job) for job, _ in sent) < 10_200


@given(
    retransmission=st.sampled_from([GO_BACK_N, SELECTIVE_REPEAT]),
    loss=st.sampled_from([0.001, 0.01, 0.1, 0.3]),
    seed=st.integers(0, 2**32),
    packets=st.integers(1, 300),
)
def test_all_bytes_arrive_once_whatever_is_lost(retransmission: int, loss: float, seed: int, packets: int) -> None:
    net = Tree(STAR, loss=loss, nic={"seed": seed, "timeout_ps": PS_PER_MS})
    plan = change_plan(NEVER_SLOWER, retransmission=retransmission)
    sent = [net.send(host, "hc", packets * PACKET - 1, plan=plan) for host in ("ha", "hb")]
    net.engine.run()
    net.engine.run(net.engine.last_end_ps + PS_PER_MS, while_jobs=False)
    results = [net.engine.pair_result(pair) for _, pair in sent]
    assert [each.acked for each in results] == [packets * PACKET - 1] * 2
    assert [each.packets - each.resent for each in results] == [packets] * 2
    # ACKs are lost, too, so no more data than all drops together.
    assert sum(each.packets - each.delivered for each in results) <= net.engine.samples().ports["drops"][-1].sum()
    assert all(each.delivered >= packets for each in results)


SETS = ("conext16", "hotnets22", "hpcc", "hpcc-config", "hpcc-paper", "nvidia", "sigcomm15")
RATE_GBPS = 8.0
"""Of the small networks' links."""


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("begins_ms", [0, 3, 5, 10, 100])
def test_the_first_cut_halves_a_rate_whenever_its_flow_begins(name: str, begins_ms: int) -> None:
    """Alpha is 1 at the first CNP of a queue pair, which HPCC's simulator and NVIDIA's NICs document."""
    plan = change_plan(reaction_plan(transport_values(dcqcn(name), RATE_GBPS)), cnp_gap_ps=PS_PER_MS)
    net = Tree(STAR, kmin_bytes=5 * PACKET, kmax_bytes=5 * PACKET, pmax=1.0)
    pairs = [net.send(host, "hc", 400 * PACKET, begin_us=1000 * begins_ms, plan=plan)[1] for host in ("ha", "hb")]
    net.engine.run(begins_ms * PS_PER_MS + 45 * PS_PER_US, while_jobs=False)
    cut = [found for pair in pairs if (found := net.engine.pair_result(pair)).cnps]
    assert cut
    assert all((each.cnps, each.rate_bytes_per_s) == (1, RATE / 2) for each in cut)


@pytest.mark.parametrize("begins_ms", [0, 3, 10, 100])
def test_a_fresh_connections_first_cut_halves_its_rate(begins_ms: int) -> None:
    plan = change_plan(reaction_plan(transport_values(dcqcn("sigcomm15"), RATE_GBPS)), cnp_gap_ps=PS_PER_MS)
    net = Tree(STAR, kmin_bytes=5 * PACKET, kmax_bytes=5 * PACKET, pmax=1.0)
    traffic, pair = net.engine.add_traffic(), net.pair("ha", "hc", plan)
    net.engine.add_pool(traffic, pair, 1, is_fresh=True, plan=plan)
    flows = [(0, PACKET, 0), (begins_ms * PS_PER_MS + 20 * PS_PER_US, 200 * PACKET, 0)]
    net.engine.set_flows(traffic, np.array(flows, FLOW))
    net.send("hb", "hc", 200 * PACKET, begin_us=1000 * begins_ms + 24)
    net.engine.run(begins_ms * PS_PER_MS + 70 * PS_PER_US, while_jobs=False)
    found = net.engine.pair_result(pair)
    assert (found.cnps, found.rate_bytes_per_s) == (1, RATE / 2)


def test_fresh_connections_stay_in_their_mltcp_job() -> None:
    """F, which the last flow's connection of TCP shows, is the share of the job's bytes that all flows have sent."""
    net = Tree(STAR)
    mltcp = net.engine.add_mltcp_job(
        make_structure("mltcp_plan", iteration_bytes=100 * PACKET, gap_us=10**6, slope_q24=1 << 24)
    )
    pair, other = net.pair("ha", "hc"), net.connect("hb", "hc", tcp_plan())
    for each, plan, starts_ms in ((pair, NEVER_SLOWER, (0, 1)), (other, None, (0, 2))):
        traffic = net.engine.add_traffic()
        net.engine.join(each, mltcp)
        net.engine.add_pool(traffic, each, 1, is_fresh=True, plan=plan)
        flows = [(start_ms * PS_PER_MS, 20 * PACKET, 0) for start_ms in starts_ms]
        net.engine.set_flows(traffic, np.array(flows, FLOW))
    net.engine.run(4 * PS_PER_MS, while_jobs=False)
    assert net.engine.connection_result(other).F_q24 / (1 << 24) == pytest.approx(4 * 20 / 100)


@pytest.mark.parametrize("gbps", [10.0, 43.0, 100.0])
def test_a_lone_flow_at_line_rate_gets_all_of_the_link(gbps: float) -> None:
    rate = gbps * 1e9 / 8
    plan = reaction_plan(transport_values(dcqcn("hpcc"), gbps))
    net = Tree([("ha", "hb")], nic={"pace_jitter": 0.1}, payload_bytes_per_s=rate, line_bytes_per_s=rate)
    job, _ = net.send("ha", "hb", round(rate / 100), plan=plan)
    net.engine.run()
    assert net.end_us(job) == pytest.approx(10_000 + 1, abs=1)  # and the cable's 1 us


def test_gaps_of_a_slow_flow_spread_too() -> None:
    """A flow that looks at its timers within a gap keeps the spread that was drawn for the gap."""
    plan = change_plan(NEVER_SLOWER, R_min=int(RATE) // 64, T_ps=1000 * PS_PER_MS, alpha_timer_ps=1000 * PS_PER_MS)
    net = Tree(STAR, sample_us=0.5, nic={"pace_jitter": 0.1}, kmin_bytes=2 * PACKET, kmax_bytes=2 * PACKET, pmax=1.0)
    for host in ("ha", "hb"):
        net.send(host, "hc", 500 * PACKET, plan=plan)
    net.engine.run(20 * PS_PER_MS, while_jobs=False)
    sent = net.engine.samples().ports["tx_packets"][:, net.numbers["ha", "s"]]
    gaps_us = np.diff(np.flatnonzero(np.diff(sent)) * 0.5)[-100:]
    assert gaps_us.mean() == pytest.approx(64, rel=0.01)
    assert (gaps_us.min(), gaps_us.max()) == (pytest.approx(64 * 0.95, abs=1), pytest.approx(64 * 1.05, abs=1))
    assert gaps_us.std() == pytest.approx(64 * 0.1 / 12**0.5, rel=0.2)


def trial(flows: int = 1, **transport: Any) -> TrialSpec:
    """Return a trial of two jobs over DCQCN."""
    return build_trial(
        jobs={
            "j1": {"profile": "vgg19-fig1", "workers": ["s0", "s2"], "flows": flows},
            "j2": {"profile": "vgg19-fig1", "workers": ["s1", "s3"], "flows": flows},
        },
        transport={"name": "dcqcn", **transport},
        iterations=2,
    )


REPEATED = r"jobs.j1.transport.retransmission: found selective_repeat, allowed is go_back_n"
SHARED = r"jobs.j1.transport.cnp_scope: found port with several flows to a host, allowed is qp"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (trial(retransmission="selective_repeat"), REPEATED),
        (trial(4, cnp_scope="port"), SHARED),
        (trial(4, set="nvidia"), SHARED),
        (trial(4, set="hpcc"), None),
        (trial(1, set="nvidia"), None),  # a port that receives one flow keeps its gap
    ],
)
def test_what_only_nics_have_is_refused_elsewhere(spec: TrialSpec, message: str | None) -> None:
    dilated = create_lab({"testbed": "lab", "dilation": "100"})
    if message is None:
        dilated.check_trial(spec)
        assert find_refusal(spec) is None
        return
    with pytest.raises(RoundaboutError, match=message):
        dilated.check_trial(spec)
    assert message in str(find_refusal(spec))


def test_the_flow_level_model_and_a_calibrated_lab_refuse_what_is_given_and_take_sets() -> None:
    for provider in (create_fluid({"testbed": "fluid"}), create_lab({"testbed": "lab"})):
        provider.check_trial(trial(4, set="nvidia"))
        with pytest.raises(RoundaboutError, match=REPEATED):
            provider.check_trial(trial(retransmission="selective_repeat"))
