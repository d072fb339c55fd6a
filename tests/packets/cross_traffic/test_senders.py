# SPDX-License-Identifier: Apache-2.0
"""Cross traffic of several senders: a load file for each, at the same instants where the kind says so."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from roundabout import build_experiment
from roundabout.plan import PlannedTrial, make_plan
from roundabout.runner.hosts.host_group import FullScale, Scaling
from roundabout.runner.trial.load_files import draw_loads
from roundabout.store import Run
from roundabout.testbeds.packets.loads import plan_loads
from tests.packets.small_runs import FILE as JOBS, run

pytestmark = pytest.mark.unit

SENDERS = {"from": ["s0", "s1"], "to": ["s2", "s3"], "load_gbps": 6}
KINDS = ("checkpoint", "incast", "kv-cache")
UNIT_BYTES = {"checkpoint": 20_000_000, "incast": 1_000_000, "kv-cache": 2000}


class Lab(Scaling):
    """A lab's default scaling."""

    scale, dilation = 100.0, 1.0


def planned(traffic: Mapping[str, Any]) -> PlannedTrial:
    fields = {**JOBS, "cross_traffic": {"x": {**SENDERS, **traffic}}, "factors": {"variant": {"fair": {}}}}
    return make_plan(build_experiment(fields), {}, {}).trials[0]


@pytest.mark.parametrize("kind", [*KINDS, "consistent"])
def test_each_sender_has_an_equal_part_of_the_load(kind: str) -> None:
    traffic = planned({"kind": kind}).spec.cross_traffic
    assert {name: (each.sender, each.load_gbps) for name, each in traffic.items()} == {
        "x-s0": ("s0", 3),
        "x-s1": ("s1", 3),
    }


@pytest.mark.parametrize("kind", [*KINDS, "consistent"])
def test_senders_of_checkpoints_and_incast_send_at_the_same_instants(kind: str) -> None:
    loads = plan_loads(planned({"kind": kind})).loads.by_name
    one, other = (loads[name].flows for name in ("x-s0", "x-s1"))
    is_same = one.tobytes() == other.tobytes()
    assert is_same == (kind in ("checkpoint", "incast"))


def test_two_lists_of_senders_send_at_instants_of_their_own() -> None:
    traffic = {"kind": "incast", **SENDERS}
    fields = {**JOBS, "cross_traffic": {"x": {**traffic, "from": ["s0"]}, "y": {**traffic, "from": "s1"}}}
    fields["factors"] = {"variant": {"apart": {}, "together": {"cross_traffic": {
        "x": {"group": "z"}, "y": {"group": "z"}}}}}  # fmt: skip
    is_same = {}
    for trial in make_plan(build_experiment(fields), {}, {}).trials:
        loads = plan_loads(trial).loads.by_name
        is_same[trial.levels["variant"]] = np.array_equal(loads["x"].flows, loads["y"].flows)
    assert is_same == {"apart": False, "together": True}


@pytest.mark.parametrize("kind", KINDS)
def test_a_lab_sends_the_flows_of_packets_at_a_hundredth(kind: str) -> None:
    trial = planned({"kind": kind})
    packets, lab = (draw_loads(trial, pace) for pace in (FullScale(), Lab()))
    for name in ("x-s0", "x-s1"):
        ours, theirs = packets[name].flows, lab[name].flows
        assert len(ours) == len(theirs) > 0
        assert np.abs(ours["start_ns"].astype(float) - theirs["start_ns"]).max() <= 2
        assert np.abs(ours["bytes"] / 100 - theirs["bytes"]).max() <= 1
        assert np.array_equal(ours["destination"], theirs["destination"])


@pytest.fixture(scope="module", params=KINDS)
def crossed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    traffic = {"kind": request.param, **SENDERS, "unit_bytes": UNIT_BYTES[request.param]}
    file = {**JOBS, "cross_traffic": {"x": traffic}, "factors": {"variant": {"fair": {}}}}
    return run(file, tmp_path_factory.mktemp("crossed"))


def test_all_senders_are_reported_with_their_loads(crossed: Run) -> None:
    summaries = crossed.table("cross_traffic").to_pylist()
    flows = crossed.table("cross_flows").to_pylist()
    assert [(row["traffic"], row["host"], row["asked_gbps"]) for row in summaries] == [
        ("x-s0", "s0", 3),
        ("x-s1", "s1", 3),
    ]
    for row in summaries:
        assert row["planned_gbps"] == pytest.approx(3, rel=0.1)
        own = [flow for flow in flows if flow["traffic"] == row["traffic"]]
        assert {flow["class"] for flow in own} == {row["kind"]}
        assert {flow["destination"] for flow in own} == {"s2", "s3"}
        assert row["due_flows"] == len(own)
