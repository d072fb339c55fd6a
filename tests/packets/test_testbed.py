# SPDX-License-Identifier: Apache-2.0
"""`--testbed packets`: marks, NICs and engine. What it shares with the flow-level model is in tests/testbeds."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.quantities import CachedReading
from analysis.reading.cells import first_shares
from analysis.reading.congestion.marks import marks_of_cells, per_iteration
from roundabout import build_experiment, testbeds
from roundabout.models.fluid import ResidualCapacity, capacities
from roundabout.models.packets import Engine, EngineError, Fabric, UnsupportedError, open_trial, play_trial, trial
from roundabout.models.packets.hardware_defaults import payload_bytes
from roundabout.models.packets.trial import count_packet_hops
from roundabout.plan import make_plan, with_simulated_jobs
from roundabout.runner.run import make_run_plan
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import Experiment, load_experiment
from roundabout.store import Run
from roundabout.testbeds.fluid.engine_trial import compute_trial
from roundabout.testbeds.packets.ahead import TrialsAhead
from roundabout.testbeds.packets.expected_work import expected_packet_hops
from roundabout.testbeds.packets.provider import PacketsProvider
from tests.packets.small_runs import FILE, rows, run

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(FILE, tmp_path_factory.mktemp("packets"))


def test_a_faster_timer_takes_more_of_the_link(small: Run) -> None:
    cells = {cell.variant: cell for cell in CachedReading(small).cells}
    assert np.mean(first_shares(small, cells["fair"], "j1", "j2")) == pytest.approx(1, abs=0.15)
    assert np.mean(first_shares(small, cells["unfair"], "j1", "j2")) > 1.2


def test_marks_outside_iterations_are_within_the_error_of_those_inside(small: Run) -> None:
    counted = per_iteration(small)
    assert counted
    bounds: Counter[tuple[str, str]] = Counter()
    for row in counted.iterations.to_pylist():
        bounds[row["trial"], row["towards"]] += row["bound"]
    for port in counted.ports.to_pylist():
        assert port["outside"] <= bounds[port["trial"], port["towards"]]
        assert port["no_job"] == port["no_source"] == 0


def test_marks_are_those_of_jobs(small: Run) -> None:
    cells = list(CachedReading(small).cells)
    for cell, marks in zip(cells, marks_of_cells(small, cells), strict=True):
        per_job = [float(np.sum(marks[job].known)) for job in cell.times]
        assert all(count == 0 for count in per_job) if cell.variant == "alone" else all(per_job)
    counted = max(row["marks"] for row in rows(small, "queue", "fair", link="L1", towards="tor1"))
    nics = [row for row in rows(small, "device_counters", "fair") if row["counter"] == "np_ecn_marked_roce_packets"]
    arrived = {row["host"]: row["value"] for row in nics}  # the last sample of each host
    assert arrived["s2"] + arrived["s3"] == counted


def test_counters_of_nics_agree_with_flows_and_reactions(small: Run) -> None:
    sent = 4 * 100_000_000
    # Both jobs begin at the line rate, and each link pauses its sender at XOFF.
    assert all(row["backlog_bytes"] < 2 * Fabric().xoff_bytes for row in rows(small, "queue", "fair"))
    [flow] = rows(small, "flows", "fair", host="s0")
    assert (flow["bytes_acked"], flow["retransmitted"], flow["peer"]) == (sent, 0, "s2")
    [cnps] = rows(small, "reactions", "fair", host="s0", counter="cnps")
    handled = [row for row in rows(small, "device_counters", "fair", host="s0") if row["counter"] == "rp_cnp_handled"]
    assert cnps["after"] == handled[-1]["value"] > 0
    pauses = [row for row in rows(small, "device_counters", "fair") if row["counter"] == "rx_prio3_pause"]
    assert pauses and all(row["value"] == 0 for row in pauses)


def test_its_fabric_and_engine_are_recorded(small: Run) -> None:
    assert small.manifest["testbed"]["fidelity"]["stamp"].startswith("computed: packet by packet")
    assert small.manifest["testbed"]["has_jitter"] is True
    assert small.manifest["testbed"]["identity"]["fabric"]["ecn"]["Kmin_bytes"] == 80_000
    assert "build/lib/libpackets.so" in small.manifest["artefacts"]


def test_a_run_uses_as_many_processors_as_it_may() -> None:
    one, two = (testbeds.find_provider({"testbed": "packets", "jobs": jobs}) for jobs in "12")
    assert one.where == {"testbed": "packets", "jobs": "1"}
    many, single = build_experiment({**FILE, "repetitions": 2}), build_experiment({**FILE, "factors": {}})
    assert expected_s(one, many) == 2 * expected_s(two, many) > 0
    assert expected_s(one, single) == expected_s(two, single) > 0


def expected_s(provider: TestbedProvider, experiment: Experiment) -> float:
    return make_run_plan(provider, experiment, {}, {}).expected_s


def test_a_slice_is_expected_to_fill_links_as_in_the_flow_level_model() -> None:
    (planned,) = make_plan(load_experiment("cluster-slices", length="quick"), {}, {}).trials
    spec = with_simulated_jobs(planned.spec, planned.seed)[0]
    carried = compute_trial(spec, ResidualCapacity.constant(capacities(spec.topology))).carried
    packets = sum(each[-1] for each in carried.values()) / payload_bytes(spec.topology.mtu_bytes)
    assert packets < expected_packet_hops(planned) < 1.05 * packets  # the last iteration counts as a whole


def test_trials_are_computed_ahead_and_dropped_at_the_end() -> None:
    experiment = build_experiment({**FILE, "iterations": 2})
    trials = make_run_plan(PacketsProvider(), experiment, {}, {}).trials
    ahead, here = TrialsAhead(Fabric()), TrialsAhead(Fabric())
    with ahead.computing(trials):
        for trial in (trials[0], trials[3]):  # the others are begun, and never requested
            computed = ahead.play(trial).iterations["j1" if "j1" in trial.spec.jobs else "j2"]
            assert computed.tobytes() in [each.tobytes() for each in here.play(trial).iterations.values()]
    assert all("packets-ahead" not in thread.name for thread in threading.enumerate())


def test_a_stopped_trial_computes_no_more_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = build_experiment({**FILE, "iterations": 10_000}).cells[1].spec
    opened: list[Engine] = []
    computed: list[int] = []

    def open_and_keep(*arguments: Any) -> Any:
        found = open_trial(*arguments)
        opened.append(found[0])
        return found

    def is_stopped() -> bool:
        computed.append(opened[0].packet_hops)
        return len(computed) == 2

    monkeypatch.setattr(trial, "open_trial", open_and_keep)
    with pytest.raises(EngineError, match="stopped"):
        play_trial(spec, 1, Fabric(), is_stopped=is_stopped)
    assert 0 < computed[0] < computed[1] == opened[0].packet_hops
    assert computed[1] < count_packet_hops(spec) / 1000


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"transport": {"name": "bbr"}, "factors": {}}, "jobs.j1.transport: found 'bbr', which has no form for hosts"),
        ({"capture": {"hosts": ["s0"]}}, "capture: found hosts"),
        (
            {"factors": {"variant": {"one": {"jobs": {"j1": {"transport": {"set": "sigcomm15"}}}}}}},
            "transport.ecn: found different thresholds",
        ),
    ],
)
def test_what_it_cannot_play_is_refused_before_the_run(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        run({**FILE, **fields}, tmp_path)
    assert message in caught.value.message
    assert caught.value.hint
    assert not list(tmp_path.glob("small/*/trials/*"))
