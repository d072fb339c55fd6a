# SPDX-License-Identifier: Apache-2.0
"""The contract of testbeds that compute trials: one experiment gives the same tables, flow by flow or by packets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.quantities import CachedReading
from analysis.reading.cross_traffic.load_sweep_data import cross_traffic_outcomes, sent_loads
from analysis.reports.comparison import CompareError, compare
from roundabout import build_experiment, testbeds
from roundabout.runner.testbed import TestbedProvider
from roundabout.store import Run
from roundabout.testbeds.fluid.provider import FluidProvider
from roundabout.testbeds.packets.provider import PacketsProvider
from tests.computed_runs import runner_on
from tests.packets.small_runs import rows
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

SIZE = 100_000_000
COMPUTE_MS, SEND_MS = 30, 25
FAIR_MS = COMPUTE_MS + 2 * SIZE * 8 / 43e9 * 1e3
FILE: dict[str, Any] = {
    "name": "small",
    "about": "Two jobs in miniature",
    "topology": "dumbbell-2x2",
    "profiles": {"small": two_phases(COMPUTE_MS, SIZE, SEND_MS)},
    "jobs": {"j1": {"profile": "small", "workers": ["s0", "s2"]}, "j2": {"profile": "small", "workers": ["s1", "s3"]}},
    "transport": {"name": "dcqcn", "set": "hpcc-paper", "T_us": 125},
    "iterations": 4,
    "factors": {
        "variant": {
            "alone": {"one_job_at_a_time": True},
            "fair": {},
            "held": {"cassini": {"timetables": {"j2": {"shift_ms": 20, "period_ms": 70, "threshold_ms": 1}}}},
            "leaving": {"jobs": {"j2": {"departs_ms": 120, "iterations": 50}}},
            "crossed": {
                "cross_traffic": {
                    "drawn": {"kind": "consistent", "from": "s1", "to": ["s2", "s3"], "load_gbps": 5},
                    "even": {"kind": "iperf", "from": "s1", "to": ["s2"], "load_gbps": 3},
                }
            },
        }
    },
}
# Counted bytes over payload: flows have no headers, and packets have those of RoCE at an MTU of 1024 bytes.
WIRE = {"fluid": 1, "packets": 1082 / 1024}


@pytest.fixture(scope="module", params=[FluidProvider, PacketsProvider], ids=["fluid", "packets"])
def provider(request: pytest.FixtureRequest) -> TestbedProvider:
    found: TestbedProvider = request.param()
    return found


@pytest.fixture(scope="module")
def run(provider: TestbedProvider, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return runner_on(provider).start(build_experiment(FILE), "small", tmp_path_factory.mktemp("computed"))


def kind_of(run: Run) -> str:
    kind: str = run.manifest["testbed"]["kind"]
    return kind


def test_it_is_stamped_as_computed_and_found_again(run: Run, provider: TestbedProvider) -> None:
    assert run.manifest["testbed"]["fidelity"]["nature"] == "computed"
    assert run.manifest["testbed"]["fidelity"]["stamp"].startswith("computed")
    assert type(testbeds.find_provider(run.manifest["where"])) is type(provider)
    assert all(trial["valid"] for trial in run.trials())
    assert not (run.path.parents[1] / "state").exists()


def test_an_isolated_iteration_takes_what_its_profile_says(run: Run) -> None:
    for job in ("j1", "j2"):
        alone = rows(run, "iterations", "alone", job=job, rank=0)
        assert np.mean([row["communication_ms"] for row in alone]) == pytest.approx(SEND_MS, abs=0.1)
        assert np.mean([row["compute_ms"] for row in alone]) == pytest.approx(COMPUTE_MS, rel=0.02)
        assert {row["sent_bytes"] for row in alone} == {SIZE}


def test_jobs_that_are_alike_share_the_link(run: Run) -> None:
    for job in ("j1", "j2"):
        fair = rows(run, "iterations", "fair", job=job, rank=0)
        assert np.mean([row["iteration_ms"] for row in fair]) == pytest.approx(FAIR_MS, rel=0.06)


def test_counters_add_up_to_what_workers_sent(run: Run) -> None:
    sent = sum(row["sent_bytes"] for row in rows(run, "iterations", "fair", host="s0")) * WIRE[kind_of(run)]
    counted = rows(run, "counters", "fair", host="s0")
    assert counted[-1]["tx_bytes"] - counted[0]["tx_bytes"] == pytest.approx(sent, rel=1e-3)
    assert np.diff([row["controller_ns"] for row in counted]).tolist() == [10_000_000] * (len(counted) - 1)
    trunk = max(row["tx_bytes"] for row in rows(run, "queue", "fair", link="L1", towards="tor1"))
    assert trunk == pytest.approx(2 * sent, rel=1e-3)  # of both jobs


def test_the_same_trial_comes_out_the_same_again(run: Run, provider: TestbedProvider, tmp_path: Path) -> None:
    variants = {name: FILE["factors"]["variant"][name] for name in ("fair", "crossed")}
    again = runner_on(provider).start(build_experiment({**FILE, "factors": {"variant": variants}}), "small", tmp_path)
    for variant in variants:
        one, other = (
            [(row["job"], row["rank"], row["iteration_ms"]) for row in rows(each, "iterations", variant)]
            for each in (run, again)
        )
        assert one == other
    first, second = (rows(each, "cross_traffic", "crossed") for each in (run, again))
    assert [row["achieved_gbps"] for row in first] == [row["achieved_gbps"] for row in second]


def test_a_held_job_begins_by_its_timetable(run: Run) -> None:
    second = rows(run, "iterations", "held", job="j2", rank=0)
    begins_ms = [(row["start_ns"] - second[0]["start_ns"]) / 1e6 + row["delay_ms"] for row in second]
    assert begins_ms == pytest.approx([0, 70, 140, 210], abs=0.1)


def test_a_job_that_departs_leaves_the_link_to_others(run: Run) -> None:
    assert len(rows(run, "iterations", "leaving", job="j2", rank=0)) == 1
    first = [row["iteration_ms"] for row in rows(run, "iterations", "leaving", job="j1", rank=0)]
    assert first[0] == pytest.approx(FAIR_MS, rel=0.1)
    assert first[-2:] == pytest.approx([COMPUTE_MS + SEND_MS] * 2, rel=0.02)


def test_cross_traffic_arrives_at_the_rate_at_which_it_is_sent(run: Run) -> None:
    drawn, even = (rows(run, "cross_traffic", "crossed", traffic=name)[0] for name in ("drawn", "even"))
    assert (drawn["asked_gbps"], even["asked_gbps"]) == (5, 3)
    assert drawn["offered_gbps"] == pytest.approx(5, rel=0.3)
    assert drawn["achieved_gbps"] == pytest.approx(drawn["offered_gbps"], rel=0.2)  # without flows under way
    assert even["achieved_gbps"] == pytest.approx(3, rel=0.02)
    achieved_gbps = sum(each.achieved_gbps or 0.0 for each in cross_traffic_outcomes(run))
    assert list(sent_loads(run).values()) == pytest.approx([achieved_gbps], rel=0.05)


def test_a_computed_run_is_not_compared_with_a_measured_one(run: Run, tmp_path: Path) -> None:
    lab = {"kind": "lab", "emulated": True, "scale": 50}
    measured = Run.create(tmp_path, "small", run.manifest | {"testbed": lab})
    (measured.path / "trials").symlink_to(run.path / "trials")
    with pytest.raises(CompareError):
        compare(run, measured)


def test_repetitions_are_computed_where_they_differ(provider: TestbedProvider, tmp_path: Path) -> None:
    """Flows have no jitter, so only drawn cross traffic differs; packets have jitter."""
    variants = {name: FILE["factors"]["variant"][name] for name in ("fair", "crossed")}
    fields = {**FILE, "iterations": 2, "repetitions": 2, "factors": {"variant": variants}}
    run = runner_on(provider).start(build_experiment(fields), "small", tmp_path)
    for variant in variants:
        times = {row["repetition"]: row["iteration_ms"] for row in rows(run, "iterations", variant)}
        is_exact = (kind_of(run), variant) == ("fluid", "fair")
        assert len(set(times.values())) == len(times) == (1 if is_exact else 2)
    assert not CachedReading(run).is_exact
