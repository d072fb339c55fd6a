# SPDX-License-Identifier: Apache-2.0
"""Links that fail, recover, lose packets and slow down, packet by packet: cases worked out by hand, and properties."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.packets import PS_PER_MS, Fabric, Message, PlayedTrial, play_trial
from roundabout.models.packets.structures import PS_PER_US, Structure, make_structure
from roundabout.spec import TrialSpec
from tests.packets.networks import NEVER_SLOWER, PACKET, RATE, Tree, change_plan, tcp_plan
from tests.packets.random_trials import RATE as LINK_RATE, profile, sent_bytes
from tests.trials import build_trial

pytestmark = pytest.mark.unit

LINE = [("ha", "s"), ("hb", "s")]
GAP_US = 2 * (1 + 1)
"""From a packet's first bit until the receiver has it: two links, each with a transmission and a delay of 1 us."""
SELECTIVE_REPEAT: Structure = change_plan(NEVER_SLOWER, retransmission=1)


def change(tree: Tree, ends: tuple[str, str], at_us: float, rate: float = 1.0, **state: float) -> None:
    """Change both directions of a link; it is up and loses nothing unless `is_up` or `loss` says so."""
    rates = {"payload_bytes_per_s": rate * RATE, "line_bytes_per_s": rate * RATE}
    plan = make_structure("link_plan", at_ps=round(at_us * PS_PER_US), **{"is_up": 1, **state}, **rates)
    tree.engine.change_link(tree.numbers[ends], plan)


def lost(tree: Tree) -> int:
    return sum(tree.engine.lost(number) for number in tree.numbers.values())


def test_a_transfer_over_a_link_that_fails_and_recovers_goes_back_to_what_is_missing() -> None:
    """Of 1,000 packets of 1 us, those of 200 us are lost; the next one makes the sender go back."""
    tree = Tree(LINE)
    job, pair = tree.send("ha", "hb", 1000 * PACKET)
    change(tree, ("s", "hb"), 300.5, is_up=0)
    change(tree, ("s", "hb"), 500.5)
    tree.engine.run()
    found = tree.engine.pair_result(pair)
    assert found.acked == 1000 * PACKET
    # Of the failed link: what it has (two packets: one sent, one delayed), and what comes in 200 us.
    assert lost(tree) == 202
    assert found.packets == found.delivered + lost(tree)
    # The first packet beyond the gap is there at 503.5 us; its NACK takes 2.2 us; 703 packets are then to be sent.
    resumes_us = 504 + 2 * 1.1
    assert tree.end_us(job) == pytest.approx(resumes_us + (1000 - 297) + GAP_US, abs=3)


def test_a_transfer_whose_end_is_lost_waits_for_the_timeout() -> None:
    tree = Tree(LINE, nic={"timeout_ps": 2 * PS_PER_MS})
    job, pair = tree.send("ha", "hb", 100 * PACKET)
    change(tree, ("s", "hb"), 50, is_up=0)
    change(tree, ("s", "hb"), 1000)
    tree.engine.run()
    assert tree.engine.pair_result(pair).acked == 100 * PACKET
    # Only the end of a message is acknowledged, so all of it is sent again.
    assert tree.end_us(job) == pytest.approx(100 + 2000 + 100 + GAP_US, abs=3)


def test_a_link_at_half_its_rate_takes_twice_as_long_for_the_rest() -> None:
    tree = Tree(LINE)
    job, _ = tree.send("ha", "hb", 1000 * PACKET)
    change(tree, ("s", "hb"), 400, rate=0.5)
    tree.engine.run()
    assert tree.end_us(job) == pytest.approx(400 + 2 * 600, abs=2 * GAP_US)


def test_a_link_loses_the_share_of_packets_that_it_is_given() -> None:
    tree = Tree(LINE)
    _, pair = tree.send("ha", "hb", 20_000 * PACKET, plan=SELECTIVE_REPEAT)
    change(tree, ("s", "hb"), 0, loss=0.02)
    tree.engine.run()
    found = tree.engine.pair_result(pair)
    assert found.acked == 20_000 * PACKET
    assert found.packets == found.delivered + lost(tree)
    assert lost(tree) / found.packets == pytest.approx(0.02, rel=0.15)


def test_tcp_comes_back_by_the_timeout_that_follows_the_recovery() -> None:
    """Timeouts come at 1, 3, 7 and 15 times the first one after the failure, which is that of a round trip of 8 us."""
    tree = Tree(LINE)
    connection = tree.connect("ha", "hb", tcp_plan(has_tail_loss_probe=0, window_bytes=20 * PACKET))
    job = tree.send_over(connection, 2000 * PACKET)
    change(tree, ("s", "hb"), 1000, is_up=0)
    change(tree, ("s", "hb"), 1000 + 40_000)
    tree.engine.run()
    assert tree.engine.pair_result(connection).acked == 2000 * PACKET
    assert tree.engine.connection_result(connection).timeouts == 3
    # The third one is 70 ms after the last acknowledgement; half of the transfer is left then, in windows that grow.
    assert tree.end_us(job) == pytest.approx(1000 + 70_000 + 1000, abs=600)


def test_a_pause_does_not_outlive_the_link_that_was_paused() -> None:
    """Two senders of one receiver fill a switch, whose pause of a host is lost with the host's link."""
    tree = Tree(
        [("ha", "s"), ("hb", "s"), ("hc", "s")],
        xoff_bytes=20 * PACKET,
        xon_bytes=18 * PACKET,
        buffer_bytes=60 * PACKET,
    )
    jobs = [tree.send(host, "hc", 400 * PACKET) for host in ("ha", "hb")]
    change(tree, ("ha", "s"), 100, is_up=0)
    change(tree, ("ha", "s"), 150)
    tree.engine.run()
    for _, pair in jobs:
        assert tree.engine.pair_result(pair).acked == 400 * PACKET
    samples = tree.engine.samples()
    assert samples.ports["pauses"][-1].sum() > 10
    assert samples.ports["drops"][-1].sum() == 0
    assert all(tree.engine.paused_since_ps(number) is None for number in tree.numbers.values())


def test_queue_pairs_take_their_other_route_and_come_back() -> None:
    """Of two ways of 1 and of 3 ms, the second one is taken between 1 and 2 ms."""
    links = [("ha", "s"), ("hb", "t"), ("s", "u"), ("u", "t"), ("s", "v"), ("v", "t")]
    tree = Tree(links)
    ways = {
        via: ([tree.numbers[pair] for pair in [("ha", "s"), ("s", via), (via, "t"), ("t", "hb")]]) for via in ("u", "v")
    }
    backs = {
        via: ([tree.numbers[pair] for pair in [("hb", "t"), ("t", via), (via, "s"), ("s", "ha")]]) for via in ("u", "v")
    }
    pair = tree.engine.add_pair(ways["u"], backs["u"], (0, 1), NEVER_SLOWER)
    tree.engine.change_route(pair, PS_PER_MS, ways["v"], backs["v"])
    tree.engine.change_route(pair, 2 * PS_PER_MS, ways["u"], backs["u"])
    job = tree.engine.add_job(make_structure("job_plan", workers=2, iterations=1, departs_ps=-1))
    tree.engine.add_phase(job, 1, [Message(pair, 0, 1, 3000 * PACKET)])
    tree.engine.run()
    tree.engine.run(4 * PS_PER_MS, while_jobs=False)
    sent = tree.engine.samples().ports["tx_packets"][-1]
    assert sent[tree.numbers["s", "v"]] == pytest.approx(1000, abs=2)
    assert sent[tree.numbers["s", "u"]] == pytest.approx(2000, abs=2)


# --- properties ------------------------------------------------------------------------------------------------------

LINKS = ("s0", "s3", "leaf0-spine0", "leaf0-spine1", "leaf1-spine0", "leaf1-spine1")
FILE: dict[str, Any] = {
    "topology": "leaf-spine-2x2",
    "iterations": 3,
    "profiles": {"p": profile("ring", 1_000_000, 2e3 * 1_000_000 / LINK_RATE)},
    "jobs": {f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"], "flows": 2} for k in range(2)},
}
TRANSPORTS: tuple[dict[str, Any], ...] = (
    {"transport": {"name": "dcqcn", "T_us": 55, "retransmission": "go_back_n"}},
    {"transport": {"name": "dcqcn", "T_us": 55, "retransmission": "selective_repeat"}},
    {"transport": {"name": "dcqcn", "retransmission": "selective_repeat"}, "routing": {"name": "spray"}},
    {"transport": {"name": "dcqcn", "retransmission": "selective_repeat"}, "routing": {"name": "adaptive"}},
    {"transport": {"name": "nscc"}, "routing": {"name": "bitmap"}},
    {"transport": {"name": "nscc"}, "routing": {"name": "reps"}},
    {"transport": {"name": "cubic"}, "queue": "drop-tail"},
    {"transport": {"name": "dctcp"}, "queue": "step"},
)


@st.composite
def link_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events of each of some links at random instants within 3 ms, after which every link is intact."""
    found = []
    for link in draw(st.lists(st.sampled_from(LINKS), min_size=1, max_size=4, unique=True)):
        instants = sorted(draw(st.lists(st.integers(0, 3000), min_size=2, max_size=4, unique=True)))
        is_intact = is_up = True
        for at_us in instants[:-1]:
            what = draw(st.sampled_from(["fails", "loses", "slows"] if is_up else ["recovers"]))
            share = {"share": draw(st.sampled_from([0.01, 0.1, 0.5]))} if what in ("loses", "slows") else {}
            found.append({"at_ms": at_us / 1e3, "link": link, "what": what, **share})
            is_intact, is_up = what == "recovers", what != "fails"
        if not is_intact:
            found.append({"at_ms": instants[-1] / 1e3, "link": link, "what": "recovers"})
    return found


@st.composite
def trials(draw: st.DrawFn) -> TrialSpec:
    fields = dict(draw(st.sampled_from(TRANSPORTS)), events=draw(link_events()))
    if draw(st.booleans()):
        fields["reroute_after_ms"] = draw(st.sampled_from([0.0, 0.1, 1.0]))
    return build_trial(**FILE | fields)


def play(spec: TrialSpec) -> PlayedTrial:
    return play_trial(spec, 1, Fabric(timeout_us=500, xoff_bytes=100_000, xon_bytes=90_000), 0.1)


@settings(max_examples=60, deadline=None)
@given(trials())
def test_every_byte_arrives_once_whatever_links_do(spec: TrialSpec) -> None:
    played = play(spec)
    pairs = [pair for name in spec.jobs for pair in played.pairs[name].values()]
    drops = played.samples.ports["drops"][-1]
    assert sum(pair.packets - pair.delivered for pair in pairs) == drops.sum() + sum(played.lost.values())
    assert played.deadlock is None
    for name, job in spec.jobs.items():
        assert played.iterations[name].shape == (len(job.workers), spec.iterations)
        assert sum(pair.acked for pair in played.pairs[name].values()) == sent_bytes(spec, name)
    if spec.jobs["j0"].transport.requested.get("retransmission") == "go_back_n":
        assert drops.sum() == 0  # pauses hold, also of links that fail and recover
    assert (played.samples.ports["backlog_bytes"][-1] == 0).all()


@settings(max_examples=10, deadline=None)
@given(trials())
def test_a_seed_gives_the_same_bytes_with_events(spec: TrialSpec) -> None:
    one, again = play(spec), play(spec)
    assert all(np.array_equal(one.iterations[name], again.iterations[name]) for name in spec.jobs)
    assert one.lost == again.lost


def test_events_after_the_last_iteration_change_nothing() -> None:
    events = [{"at_ms": 900, "link": "s0", "what": "fails"}, {"at_ms": 901, "link": "s0", "what": "recovers"}]
    fields = TRANSPORTS[0]
    without = play(build_trial(**FILE | fields))
    late = play(build_trial(**FILE | fields | {"events": events}))
    assert late.lost == {"s0": 0}
    for name, found in without.iterations.items():
        assert found.tobytes() == late.iterations[name].tobytes()
