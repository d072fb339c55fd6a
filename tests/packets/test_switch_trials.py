# SPDX-License-Identifier: Apache-2.0
"""Trials whose switches share buffers, weigh priorities, or signal by RED."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.models.packets import PlayedTrial, UnsupportedError
from roundabout.models.packets.network import number_ports
from roundabout.models.packets.switches import CNP_QUEUE, plan_buffers
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import TrialSpec, load_topology
from roundabout.spec.priority_queues import WeightedQueues
from roundabout.spec.shared_buffer import SharedBuffer
from roundabout.testbeds.fluid.provider import FluidProvider
from roundabout.testbeds.lab.provider import LabProvider
from roundabout.testbeds.packets.provider import PacketsProvider
from roundabout.testbeds.rack.provider import RackProvider
from tests.packets.random_trials import play, sent_bytes, trials
from tests.packets.small_runs import FILE, rows, run
from tests.trials import build_trial

pytestmark = pytest.mark.unit

INVENTORY = Path(__file__).parents[2] / "inventory.example"
WITH_PRIORITY = {"jobs": {**FILE["jobs"], "j1": {**FILE["jobs"]["j1"], "priority": 10}}}


def with_buffer(spec: TrialSpec, **fields: Any) -> TrialSpec:
    topology = spec.topology.model_copy(update={"buffer": SharedBuffer(**fields)})
    return spec.model_copy(update={"topology": topology})


@st.composite
def switched(draw: st.DrawFn, *queues: str) -> TrialSpec:
    """Two random jobs whose packets meet in switches with little memory to share, with weights or without."""
    spec = draw(trials(queues=queues))
    # The headroom of four links and three priorities is at most 165 kB of it.
    size, alpha = draw(st.integers(200_000, 1_500_000)), draw(st.sampled_from([1 / 8, 1 / 2, 1.0, 4.0]))
    weights = draw(st.sampled_from([None, (1, 1), (1, 3), (5, 2)]))
    if weights and spec.data_queues == 2:
        quantum = draw(st.sampled_from([None, 100, 4000]))
        spec = spec.model_copy(update={"dwrr": WeightedQueues(weights=weights, quantum_bytes=quantum)})
    return with_buffer(spec, bytes=size, alpha=alpha)


def check_buffers_and_bytes(spec: TrialSpec, played: PlayedTrial) -> None:
    """Check that no buffer holds more than it has, that all bytes arrive, and that queues add up to their port."""
    buffers, samples = played.samples.buffers, played.samples
    plans = plan_buffers(spec, played.ports).values()
    for place, (plan, headroom) in enumerate(plans):
        reserved = (spec.data_queues + 1) * sum(headroom.values())
        assert spec.topology.buffer and plan.shared_bytes + reserved == spec.topology.buffer.bytes
        assert 0 <= buffers["shared_bytes"][:, place].min() <= buffers["shared_bytes"][:, place].max()
        assert buffers["shared_bytes"][:, place].max() <= plan.shared_bytes
        assert 0 <= buffers["headroom_bytes"][:, place].min() <= buffers["headroom_bytes"][:, place].max() <= reserved
        assert buffers["most_bytes"][-1, place] <= spec.topology.buffer.bytes
    assert all((buffers[name][-1] == 0).all() for name in ("shared_bytes", "headroom_bytes"))
    for name in spec.jobs:
        assert sum(pair.acked for pair in played.pairs[name].values()) == sent_bytes(spec, name)
    ports = [port for port, _ in samples.places]
    for name in ("tx_bytes", "backlog_bytes", "drops", "marks", "pauses", "paused_ps"):
        sums = np.zeros_like(samples.ports[name])
        np.add.at(sums.T, ports, samples.queues[name].T)
        assert (sums[:, sorted(set(ports))] == samples.ports[name][:, sorted(set(ports))]).all()


@settings(max_examples=30, deadline=None)
@given(switched("thresholds", "step", "red"))
def test_lossless_switches_drop_nothing_and_keep_the_order(spec: TrialSpec) -> None:
    played = play(spec)
    assert played.samples.ports["drops"][-1].sum() == 0
    assert played.samples.hosts["out_of_sequence"][-1].sum() == 0
    assert all(pair.resent == 0 for name in spec.jobs for pair in played.pairs[name].values())
    check_buffers_and_bytes(spec, played)


@settings(max_examples=20, deadline=None)
@given(switched("drop-tail"))
def test_what_lossy_switches_drop_comes_again(spec: TrialSpec) -> None:
    played = play(spec)
    pairs = [pair for name in spec.jobs for pair in played.pairs[name].values()]
    lost = sum(pair.packets - pair.delivered for pair in pairs)
    assert 0 <= lost <= played.samples.ports["drops"][-1].sum()  # the rest are ACKs, NACKs and CNPs
    assert not played.samples.ports["pauses"].any()
    check_buffers_and_bytes(spec, played)


@settings(max_examples=10, deadline=None)
@given(switched("thresholds", "red", "drop-tail"), st.integers(0, 2**62))
def test_a_seed_gives_the_same_bytes(spec: TrialSpec, seed: int) -> None:
    one, again = (play(spec, seed).samples for _ in range(2))
    for name in ("ports", "queues", "buffers"):
        for column, counts in getattr(one, name).items():
            assert counts.tobytes() == getattr(again, name)[column].tobytes()


def small(**fields: Any) -> TrialSpec:
    return build_trial(**FILE | {"factors": {"variant": {"fair": {}}}, **fields})


def test_a_small_buffer_pauses_where_fixed_thresholds_never_did() -> None:
    spec = small(iterations=1)
    assert not play(spec).samples.ports["pauses"].any()
    played = play(with_buffer(spec, bytes=250_000, alpha=1 / 8))
    assert played.samples.ports["pauses"][-1].sum() > 10
    assert played.samples.ports["drops"][-1].sum() == 0


def test_headroom_is_that_of_links_and_priorities_in_use() -> None:
    spec = small()
    ports = number_ports(spec.topology)
    shared = with_buffer(spec, bytes=1_000_000, alpha=1, headroom_bytes=20_000, xon_offset_bytes=5000)
    plans = plan_buffers(shared, ports)
    assert set(plans) == {"tor0", "tor1"}
    assert {plan.shared_bytes for plan, _ in plans.values()} == {1_000_000 - 3 * 2 * 20_000}  # three links, data, CNPs
    assert {plan.xon_offset_bytes for plan, _ in plans.values()} == {5000}
    ranked = with_buffer(small(**WITH_PRIORITY), bytes=1_000_000, alpha=1, headroom_bytes=20_000)
    assert {plan.shared_bytes for plan, _ in plan_buffers(ranked, ports).values()} == {1_000_000 - 180_000}
    lossy = with_buffer(spec.model_copy(update={"queue": "drop-tail"}), bytes=1_000_000, alpha=1)
    assert {plan.shared_bytes for plan, _ in plan_buffers(lossy, ports).values()} == {1_000_000}


def test_weights_divide_a_link_between_priorities() -> None:
    # Each job has 32 Gbit/s to send, of the trunk's 43; j1's priority gets two thirds of that while both send.
    # Nothing is marked, so that PFC alone holds them back and both queues are full.
    transport = {"name": "dcqcn", "T_us": 125, "ecn": {"Kmin_bytes": 1e8, "Kmax_bytes": 2e8, "Pmax": 1}}
    spec = small(**WITH_PRIORITY, iterations=1, transport=transport, dwrr={"weights": [1, 2]})
    played = play(spec)
    [trunk] = [number for number, (ends, _) in enumerate(played.ports.directions) if ends == ("tor0", "tor1")]
    low, high = (
        played.samples.queues["tx_bytes"][:, played.samples.places.index((trunk, queue))] for queue in range(2)
    )
    both = np.flatnonzero((low > 0) & (high < high[-1]))[20:-20]
    assert np.ptp(high[both]) / np.ptp(low[both]) == pytest.approx(2, rel=0.02)


def test_tables_have_queues_and_buffers(tmp_path: Path) -> None:
    topology = load_topology("dumbbell-2x2").model_copy(update={"buffer": SharedBuffer(bytes=4_000_000, alpha=1)})
    fields = {
        **FILE,
        **WITH_PRIORITY,
        "topology": "shared",
        "topologies": {"shared": topology.model_dump(mode="json", exclude={"name"}, exclude_none=True)},
        "queue": "red",
        "dwrr": {"weights": [1, 1]},
        "factors": {"variant": {"fair": {}}},
        "repetitions": 1,
        "iterations": 2,
    }
    found = run(fields, tmp_path)
    of_port = {"link": "L1", "towards": "tor1"}
    queues = {row["queue"] for row in rows(found, "port_queues", "fair", **of_port)}
    assert queues == {0, 1, CNP_QUEUE}
    last = {queue: rows(found, "port_queues", "fair", **of_port, queue=queue)[-1] for queue in queues}
    whole = rows(found, "queue", "fair", **of_port)[-1]
    for name in ("tx_bytes", "drops", "marks"):
        assert sum(row[name] for row in last.values()) == whole[name]
    assert last[0]["marks"] > 0 and last[1]["marks"] > 0
    assert last[0]["average_bytes"] is not None
    buffers = rows(found, "switch_buffers", "fair", host="tor0")
    assert 0 < buffers[-1]["most_bytes"] <= 4_000_000
    assert buffers[-1]["shared_bytes"] == buffers[-1]["headroom_bytes"] == 0


def test_trials_without_these_have_the_tables_of_before(tmp_path: Path) -> None:
    found = run({**FILE, "factors": {"variant": {"fair": {}}}, "repetitions": 1, "iterations": 1}, tmp_path)
    assert not list(tmp_path.rglob("port_queues.parquet"))
    assert not list(tmp_path.rglob("switch_buffers.parquet"))
    assert rows(found, "queue", "fair")


def test_a_buffer_that_headroom_fills_is_refused(tmp_path: Path) -> None:
    spec = with_buffer(small(), bytes=60_000, alpha=1)
    with pytest.raises(UnsupportedError) as caught:
        PacketsProvider().check_trial(spec)
    assert caught.value.message == (
        "topology.buffer.bytes: found 60000, allowed is more than the 82356 of headroom of 3 links and 2 priorities, "
        "CNPs' included, at tor0"
    )


@pytest.mark.parametrize("provider", [LabProvider(), RackProvider(INVENTORY), FluidProvider()])
def test_other_testbeds_refuse_what_would_have_no_effect(provider: TestbedProvider) -> None:
    weighted = small(**WITH_PRIORITY, dwrr={"weights": [1, 3]})
    with pytest.raises(UsageError, match=r"dwrr: found weights 1, 3, allowed is none: .*"):
        provider.check_trial(weighted)
    shared = with_buffer(small(), bytes=1_000_000, alpha=1)
    if isinstance(provider, FluidProvider):  # which has neither queues nor buffers, and says so on every page
        provider.check_trial(shared)
        return
    with pytest.raises(UsageError, match="topology.buffer: found 1000000 bytes that ports share, allowed is none"):
        provider.check_trial(shared)
    trims = small().topology.model_copy(update={"queue": "lossy", "trimming": True})
    with pytest.raises(UsageError, match="topology.trimming: found true, allowed is none"):
        provider.check_trial(small().model_copy(update={"topology": trims}))
    if isinstance(provider, LabProvider):
        with pytest.raises(UsageError, match="queue: found red, allowed is none"):
            provider.check_trial(small(queue="red"))
