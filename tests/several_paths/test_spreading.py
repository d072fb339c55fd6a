# SPDX-License-Identifier: Apache-2.0
"""Routing that spreads the packets of one flow: spray, flowlets, the shortest queue, and planes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from roundabout.core.errors import UsageError
from roundabout.models.packets import Fabric, PlayedTrial, UnsupportedError, play_trial
from roundabout.models.packets.hardware_defaults import payload_bytes
from roundabout.spec import TrialSpec
from roundabout.spec.routing import Flow, Routing
from roundabout.spec.topology import Topology
from roundabout.testbeds.lab.provider import LabProvider
from roundabout.testbeds.packets.support import check_support
from tests.several_paths.fabrics import leaf_spine, rails
from tests.several_paths.spread_trials import BYTES, DCQCN, LEARNING, NSCC, POLICIES, UNMARKED, routed, trial
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

PAYLOAD = payload_bytes(1500)


def play(spec: TrialSpec, seed: int = 1) -> PlayedTrial:
    return play_trial(spec, seed, Fabric(timeout_us=500), sample_ms=0.1)


def carried(played: PlayedTrial) -> dict[tuple[str, str], int]:
    """Return the packets that each direction of each link has carried, by its ends."""
    packets = played.samples.ports["tx_packets"][-1]
    return {ends: int(count) for (ends, _), count in zip(played.ports.directions, packets, strict=True)}


def test_each_link_of_the_equal_paths_has_an_even_share() -> None:
    shares = routed({"name": "spray"}, spines=4).link_shares(Flow("s0", "s2"))
    assert {hop.link.name: share for hop, share in shares.items()} == {
        "s0": 1.0,
        "s2": 1.0,
        **{f"l{leaf}-p{spine}": 0.25 for leaf in range(2) for spine in range(4)},
    }


def test_a_flow_under_one_leaf_has_one_path() -> None:
    shares = routed({"name": "spray"}).link_shares(Flow("s0", "s1"))
    assert {hop.link.name: share for hop, share in shares.items()} == {"s0": 1.0, "s1": 1.0}


@pytest.mark.parametrize(("name", "transport"), [("spray", UNMARKED), ("adaptive", UNMARKED), ("bitmap", NSCC)])
def test_packets_of_one_flow_take_all_paths_evenly(name: str, transport: dict[str, Any]) -> None:
    played = play(trial(routed({"name": name}, spines=4), {"j": ["s0", "s2"]}, transport=transport))
    up = np.array([carried(played)["leaf0", f"spine{spine}"] for spine in range(4)])
    packets = -(-BYTES // PAYLOAD)
    assert up.sum() >= packets
    assert (np.abs(up / up.sum() - 0.25) < 0.04).all()


def test_a_flow_without_a_gap_stays_on_one_path() -> None:
    played = play(trial(routed({"name": "flowlet", "gap_us": 10_000}, spines=4), {"j": ["s0", "s2"]}))
    up = [carried(played)["leaf0", f"spine{spine}"] for spine in range(4)]
    assert sorted(up)[:3] == [0, 0, 0]


def test_a_flow_with_gaps_takes_several_paths() -> None:
    spec = trial(routed({"name": "flowlet", "gap_us": 50}, spines=4), {"j": ["s0", "s2"]}, iterations=40)
    up = [carried(play(spec))["leaf0", f"spine{spine}"] for spine in range(4)]
    packets = -(-BYTES // PAYLOAD)
    assert min(up) >= packets  # each path has whole iterations, between which the flow is silent
    assert all(abs(each / packets - round(each / packets)) < 0.1 for each in up)


@pytest.mark.parametrize("policy", LEARNING)
def test_a_flow_takes_no_more_paths_than_it_has_entropies(policy: dict[str, Any]) -> None:
    fabric = routed({**policy, "entropies": 2}, spines=4)
    up = carried(play(trial(fabric, {"j": ["s0", "s2"]}, transport=NSCC)))
    assert sum(up["leaf0", f"spine{spine}"] > 0 for spine in range(4)) <= 2


@pytest.mark.parametrize(
    ("name", "transport", "least_ms", "most_ms"),
    [
        ("spray", UNMARKED, 1.9, 2.1),
        ("adaptive", UNMARKED, 1.1, 1.15),
        ("spray", NSCC, 1.9, 2.3),
        ("bitmap", NSCC, 1.1, 1.6),
        ("reps", NSCC, 1.1, 1.3),
    ],
)
def test_marks_and_the_shortest_queue_take_from_a_slow_link_what_it_cannot_carry(
    name: str, transport: dict[str, Any], least_ms: float, most_ms: float
) -> None:
    # Two jobs send 8 Gbit/s each for a ms. Half of that takes a link of 4.3 Gbit/s 1.86 ms.
    fast = routed({"name": name})
    slow = [
        link.model_copy(update={"line_rate_gbps": 5, "payload_rate_gbps": 4.3}) if link.name == "l0-p0" else link
        for link in fast.links
    ]
    topology = Topology.model_validate(fast.model_dump() | {"links": [each.model_dump() for each in slow]})
    played = play(trial(topology, {"a": ["s0", "s2"], "b": ["s1", "s3"]}, transport=transport))
    last_ms = max(float(each["end_ps"].max()) / 1e9 for each in played.iterations.values())
    assert least_ms < last_ms < most_ms


def test_spraying_ends_collisions() -> None:
    # Two flows of 20 Gbit/s fit on two spines of 43; ECMP may put both on one, and still fits. Four at 40 do not.
    jobs = {f"j{number}": [f"s{number}", f"s{number + 4}"] for number in range(4)}
    profiles = {"p": two_phases(0.1, 5_000_000, 1.0, pattern="pipeline")}
    ends = {}
    for name in ("ecmp", "spray", "adaptive"):
        spec = trial(routed({"name": name}, spines=4, below=4), jobs, profiles=profiles)
        ends[name] = max(float(each["end_ps"].max()) / 1e9 for each in play(spec).iterations.values())
    assert ends["ecmp"] > 1.9  # ms: two of four flows share a spine
    assert ends["spray"] < 1.25
    assert ends["adaptive"] < 1.15


def two_planes(routing: dict[str, Any]) -> Topology:
    return Topology.model_validate(rails().model_dump() | {"routing": routing})


def test_one_flow_takes_both_nics_with_planes() -> None:
    profiles = {"p": two_phases(0.1, 10_000_000, 2.0, pattern="pipeline")}
    ends = {}
    for planes in (False, True):
        spec = trial(
            two_planes({"name": "spray", "planes": planes}), {"j": ["s0", "s1"]}, profiles=profiles, iterations=1
        )
        played = play(spec)
        ends[planes] = float(played.iterations["j"]["end_ps"].max()) / 1e9
        nics = [carried(played)["s0", f"rail{nic}"] for nic in range(2)]
        assert nics[0] - nics[1] in ({0, 1} if planes else {nics[0]})
    assert ends[True] == pytest.approx(2.1, rel=0.01)


def test_planes_need_no_link_between_them() -> None:
    joined = rails().model_dump()
    joined["links"] = [link for link in joined["links"] if "spine" not in link["ends"]]
    joined["switches"] = [name for name in joined["switches"] if name != "spine"]
    topology = Topology.model_validate(joined | {"routing": {"name": "spray", "planes": True}})
    played = play(trial(topology, {"j": ["s0", "s1"]}))
    assert carried(played)["s0", "rail0"] > 0 < carried(played)["s0", "rail1"]
    with pytest.raises(ValidationError, match="planes: true"):
        Topology.model_validate(joined | {"routing": {"name": "spray"}})


@st.composite
def spread_trials(draw: st.DrawFn, /, **fields: Any) -> TrialSpec:
    """Flows between random hosts of a random leaf-spine, some into the same host."""
    policy = draw(st.sampled_from((*POLICIES, *LEARNING)))
    leaves, spines, below = draw(st.integers(2, 3)), draw(st.integers(2, 4)), draw(st.integers(1, 3))
    topology = leaf_spine(leaves, spines, below, Routing(**policy))
    ends = st.lists(st.sampled_from(topology.hosts), min_size=2, max_size=2, unique=True)
    jobs = {f"j{number}": each for number, each in enumerate(draw(st.lists(ends, min_size=1, max_size=5)))}
    size = draw(st.integers(1, 400_000))
    profiles = {"p": two_phases(0.05, size, max(size / 5e6, 1e-3), pattern=draw(st.sampled_from(["pipeline", "ring"])))}
    transport = NSCC if policy in LEARNING else DCQCN
    trims = policy in LEARNING and fields.get("queue") == "lossy" and draw(st.booleans())
    topology = topology.model_copy(update=fields | {"trimming": trims})
    return trial(topology, jobs, profiles=profiles, iterations=draw(st.integers(1, 3)), transport=transport)


@settings(max_examples=40, deadline=None)
@given(spread_trials())
def test_without_loss_nothing_is_sent_again(spec: TrialSpec) -> None:
    played = play(spec)
    assert played.samples.ports["drops"][-1].sum() == 0
    for name in spec.jobs:
        for pair in played.pairs[name].values():
            assert (pair.resent, pair.packets) == (0, pair.delivered)


@settings(max_examples=40, deadline=None)
@given(spread_trials(queue="lossy", queue_bytes=6_000))
def test_bytes_are_exact_under_loss(spec: TrialSpec) -> None:
    played = play(spec)
    lost = played.samples.ports["drops"][-1].sum()
    pairs = [pair for name in spec.jobs for pair in played.pairs[name].values()]
    assert sum(pair.packets - pair.delivered for pair in pairs) == lost
    for pair in pairs:  # After a loss, what arrived may be unknown to the sender, too.
        assert pair.resent >= pair.packets - pair.delivered
        assert pair.packets > pair.delivered or pair.resent == 0
    for name, job in spec.jobs.items():
        sent = sum(each.bytes for phase in job.profile.phases for each in job.transfers(phase))
        assert sum(pair.acked for pair in played.pairs[name].values()) == spec.iterations * sent
        assert played.iterations[name].shape == (len(job.workers), spec.iterations)


@settings(max_examples=25, deadline=None)
@given(spread_trials())
def test_packets_cross_links_of_shortest_paths_alone(spec: TrialSpec) -> None:
    found = {ends for ends, count in carried(play(spec)).items() if count}
    hops = {hop for job in spec.jobs for hop in spec.hops(job)}
    allowed = {(hop.sender, hop.receiver) for hop in hops}
    assert found <= allowed | {ends[::-1] for ends in allowed}


@pytest.mark.parametrize("policy", [*POLICIES, *LEARNING])
def test_a_seed_gives_the_same_packets(policy: dict[str, Any]) -> None:
    transport = NSCC if policy in LEARNING else DCQCN
    spec = trial(routed(policy, spines=3), {"a": ["s0", "s2"], "b": ["s1", "s3"]}, transport=transport)
    one, again = play(spec), play(spec)
    assert carried(one) == carried(again)
    assert all((one.iterations[name] == again.iterations[name]).all() for name in spec.jobs)


@pytest.mark.parametrize(
    ("transport", "message"),
    [
        ({**UNMARKED, "retransmission": "go_back_n"}, "retransmission: found go_back_n with routing spray"),
        ({"name": "dctcp"}, "found dctcp with routing spray"),
    ],
)
def test_transports_that_take_overtaken_packets_for_lost_are_refused(transport: dict[str, Any], message: str) -> None:
    spec = trial(routed({"name": "spray"}), {"j": ["s0", "s2"]}, transport=transport)
    with pytest.raises(UnsupportedError, match=message) as caught:
        check_support(spec, Fabric())
    assert "routing.name=ecmp" in str(caught.value.hint)


@pytest.mark.parametrize("policy", LEARNING)
def test_transports_without_an_ack_of_each_packet_are_refused(policy: dict[str, Any]) -> None:
    spec = trial(routed(policy), {"j": ["s0", "s2"]}, transport=UNMARKED)
    with pytest.raises(UnsupportedError, match=f"dcqcn with routing {policy['name']}, allowed is swift") as caught:
        check_support(spec, Fabric())
    assert "routing.name=spray" in str(caught.value.hint)


@pytest.mark.parametrize("policy", [*POLICIES, *LEARNING])
def test_a_lab_refuses_each_policy_by_its_name(policy: dict[str, Any]) -> None:
    spec = trial(routed(policy), {"j": ["s0", "s2"]})
    with pytest.raises(UsageError, match=f"^topology.routing.name: found {policy['name']}, allowed are") as caught:
        LabProvider().check_trial(spec)
    assert "--testbed packets" in str(caught.value.hint)


def test_transports_that_do_not_answer_trimmed_packets_are_refused() -> None:
    fabric = routed({"name": "spray"}).model_copy(update={"queue": "lossy", "trimming": True})
    with pytest.raises(UnsupportedError, match="found dcqcn with trimming, allowed is swift"):
        check_support(trial(fabric, {"j": ["s0", "s2"]}, transport=DCQCN), Fabric())


@pytest.mark.parametrize(
    "routing",
    [
        {"name": "flowlet"},
        {"name": "spray", "gap_us": 5},
        {"name": "ecmp", "planes": True},
        {"name": "flowlet", "gap_us": 5, "planes": True},
        {"name": "spray", "entropies": 64},
        {"name": "reps", "entropies": 100},
        {"name": "bitmap", "planes": True},
    ],
)
def test_a_rule_has_its_own_fields(routing: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Routing(**routing)


def test_marks_are_counted_by_the_sending_host() -> None:
    jobs = {"a": ["s0", "s2"], "b": ["s1", "s2"]}
    profiles = {"p": two_phases(0.1, 3_000_000, 1.0, pattern="pipeline")}
    played = play(trial(routed({"name": "spray"}), jobs, profiles=profiles, transport=DCQCN))
    marks = played.samples.marks
    assert {source for _, source in marks} <= {0, 1}
    total = sum(int(counted[-1]) for counted in marks.values())
    assert total == played.samples.ports["marks"][-1].sum() > 0
