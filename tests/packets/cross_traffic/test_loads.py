# SPDX-License-Identifier: Apache-2.0
"""Cross traffic of experiments on the packet-level testbed: crossgen's flows, and tables that studies read."""

import csv
import io
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.reading.cross_traffic.load_sweep_data import cross_traffic_outcomes, sent_loads
from roundabout import build_experiment
from roundabout.core.paths import ROOT
from roundabout.models.packets import Fabric, UnsupportedError, play_trial
from roundabout.plan import PlannedTrial, expected_duration_s, make_plan
from roundabout.runner.hosts.host_group import FullScale
from roundabout.runner.trial.cross_traffic import LEAD_MS, plan_arguments
from roundabout.runner.trial.load_files import CROSSGEN
from roundabout.spec import load_experiment
from roundabout.store import Run
from roundabout.testbeds.packets.loads import plan_loads
from roundabout.testbeds.packets.support import check_support
from tests.packets.small_runs import FILE as JOBS, run

pytestmark = pytest.mark.unit

TRAFFIC = {
    "consistent": {"kind": "consistent", "from": "s0", "to": ["s2", "s3"], "load_gbps": 5},
    "burst": {"kind": "burst", "from": "s1", "to": ["s3"], "load_gbps": 4, "connections": "fresh"},
    "iperf": {"kind": "iperf", "from": "s1", "to": ["s2"], "load_gbps": 3, "transport": {"name": "dctcp"}},
}
FILE = {**JOBS, "cross_traffic": TRAFFIC, "factors": {"variant": {"fair": {}}}}


def planned(fields: Mapping[str, Any]) -> PlannedTrial:
    return make_plan(build_experiment(fields), {}, {}).trials[0]


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(FILE, tmp_path_factory.mktemp("crossed"))


def rows(run: Run, table: str, **values: Any) -> list[dict[str, Any]]:
    return [row for row in run.table(table).to_pylist() if all(row[name] == value for name, value in values.items())]


@pytest.mark.parametrize("name", ["consistent", "burst"])
def test_flows_are_those_that_crossgen_sends_with_the_trials_seed(name: str, tmp_path: Path) -> None:
    trial = planned(FILE)
    lasting = PlannedTrial(**{**vars(trial), "expected_s": expected_duration_s(trial.spec)})
    file = tmp_path / "x.load"
    program = ROOT / CROSSGEN
    subprocess.run([program, "plan", *plan_arguments(FullScale(), lasting, name), "--output", file], check=True)
    shown = subprocess.run([program, "show", file], check=True, capture_output=True, text=True).stdout
    sent = list(csv.DictReader(io.StringIO(shown)))
    flows = plan_loads(trial).loads.by_name[name].flows
    assert [int(each["start_ns"]) * 1000 for each in sent] == flows["at_ps"].tolist()
    assert [int(each["bytes"]) for each in sent] == flows["bytes"].tolist()
    pools = {
        (receiver, kind): place
        for place, (receiver, kind) in enumerate(
            (receiver, kind)
            for receiver in trial.spec.cross_traffic[name].receivers
            for kind in (("burst", "quiet") if name == "burst" else ("consistent",))
        )
    }
    assert [pools[each["destination"], each["class"]] for each in sent] == flows["pool"].tolist()


def test_repetitions_draw_other_flows() -> None:
    trials = make_plan(build_experiment({**FILE, "repetitions": 2}), {}, {}).trials
    first, second = (plan_loads(trial).loads.by_name["consistent"].flows["bytes"] for trial in trials)
    assert not np.array_equal(first, second)


def test_offered_load_is_that_of_the_schedule(crossed: Run) -> None:
    jobs = rows(crossed, "iterations")
    begin_ns, end_ns = min(row["start_ns"] for row in jobs), max(row["comm_end_ns"] for row in jobs)
    for name in ("consistent", "burst"):
        [summary] = rows(crossed, "cross_traffic", traffic=name)
        flows = rows(crossed, "cross_flows", traffic=name)
        due = [row for row in flows if row["measured"]]
        offered_gbps = sum(row["bytes"] for row in due) * 8 / (end_ns - begin_ns)
        assert summary["offered_gbps"] == pytest.approx(offered_gbps, rel=1e-6)
        assert summary["due_flows"] == len(flows) == summary["finished_flows"] + summary["unfinished_flows"]
        assert [row["flow"] for row in flows] == list(range(len(flows)))
        assert min(row["controller_ns"] for row in flows) >= begin_ns - LEAD_MS * 1_000_000
        assert summary["asked_gbps"] == TRAFFIC[name]["load_gbps"]
        assert summary["planned_gbps"] == pytest.approx(TRAFFIC[name]["load_gbps"], rel=0.1)


def test_flows_take_at_least_what_links_take(crossed: Run) -> None:
    rate_gbps = build_experiment(FILE).cells[0].spec.topology.bottleneck.payload_rate_gbps
    for row in rows(crossed, "cross_flows"):
        if row["end_ns"] is not None:
            assert row["end_ns"] - row["start_ns"] > row["bytes"] * 8 / rate_gbps
            assert row["start_ns"] == row["controller_ns"]


def test_achieved_load_is_what_senders_ports_carried(crossed: Run) -> None:
    outcomes = cross_traffic_outcomes(crossed)
    assert {each.kind: each.schedule_held for each in outcomes} == {"consistent": True, "burst": True, "iperf": None}
    achieved_gbps = sum(each.achieved_gbps or 0.0 for each in outcomes)
    [sent_gbps] = sent_loads(crossed).values()
    # Senders are workers too, whose RoCE packets have other headers; samples are 10 ms apart.
    assert sent_gbps == pytest.approx(achieved_gbps, rel=0.05)
    [iperf] = rows(crossed, "cross_traffic", traffic="iperf")
    assert iperf["achieved_gbps"] == pytest.approx(3, rel=0.02)
    assert (iperf["parallel"], iperf["offered_gbps"], iperf["due_flows"]) == (1, None, None)


def test_a_load_of_zero_is_no_cross_traffic() -> None:
    without = planned({**FILE, "cross_traffic": {}})
    zero = planned({**FILE, "cross_traffic": {name: {**each, "load_gbps": 0} for name, each in TRAFFIC.items()}})
    loads = plan_loads(zero).loads
    assert not loads.by_name and loads.lead_ms == 0
    one, other = (play_trial(trial.spec, 1, Fabric(), loads=loads).iterations["j1"] for trial in (without, zero))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", ["jumbo-frames", "cross-traffic-all", "bursts-resnet", "bursts-tcp", "websearch-bert"])
def test_the_catalogs_cross_traffic_is_played(name: str) -> None:
    for cell in load_experiment(name).cells[::7]:
        check_support(cell.spec, Fabric())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"traffic_class": "own"}, "cross_traffic.x.traffic_class: found own, expected jobs"),
        ({"transport": {"name": "mltcp_cubic"}}, "cross_traffic.x.transport: found 'mltcp_cubic', allowed is"),
        ({"transport": {"name": "bbr"}}, "cross_traffic.x.transport: found 'bbr', which has no form for hosts"),
    ],
)
def test_what_cannot_be_played_is_refused(changed: dict[str, Any], message: str) -> None:
    fields = {**FILE, "cross_traffic": {"x": {**TRAFFIC["consistent"], **changed}}}
    with pytest.raises(UnsupportedError) as caught:
        check_support(build_experiment(fields).cells[0].spec, Fabric())
    assert message in caught.value.message
    assert caught.value.hint
