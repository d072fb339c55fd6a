# SPDX-License-Identifier: Apache-2.0
"""Values between trials and a timeline, from an experiment's file to its tables, in the fluid testbed."""

from typing import Any

import pytest

from analysis.reading.cells import cells_of
from analysis.reports.summary import summarize_run
from roundabout.store import Run
from tests.computed_runs import compute_run

pytestmark = pytest.mark.unit

TAKING = """
name: taking
about: Jobs play what counters show of them, and interleave by it
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2]}
  j2: {profile: vgg19-fig1, workers: [s1, s3]}
iterations: 10
transport: {name: dcqcn}
factors:
  variant:
    alone: {one_job_at_a_time: true}
    replayed: {jobs: {j1: {inputs: {profile: alone}}, j2: {inputs: {profile: alone}}}}
    shifted: {jobs: {j2: {arrives_ms: 500, inputs: {start_offset_ms: alone}}}}
    leaving: {jobs: {j2: {departs_ms: 1200, iterations: 50}}}
"""
FAIR_MS = 150 + 574.68e6 * 8 / 21.5e9 * 1e3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("taking") / "taking.yaml"
    path.write_text(TAKING)
    return compute_run(path)


def trial_of(run: Run, variant: str) -> dict[str, Any]:
    return next(trial for trial in run.trials() if trial["variant"] == variant)


def times_ms(run: Run, variant: str, job: str) -> list[float]:
    rows = run.table("iterations").to_pylist()
    return [row["iteration_ms"] for row in rows if (row["variant"], row["job"], row["rank"]) == (variant, job, 0)]


def test_a_measured_profile_is_replayed(run: Run) -> None:
    trial = trial_of(run, "replayed")
    alone = {each["job"]: each["trial"] for each in run.trials() if each["variant"] == "alone"}
    for job in ("j1", "j2"):
        found = trial["given"][job]["profile"]
        assert found["trials"] == [alone[job]]
        assert found["value"] == trial["spec"]["jobs"][job]["profile"]
        compute, send = found["value"]["phases"]
        assert (compute["compute_ms"], send["alone_ms"]) == pytest.approx((150, 143), rel=1e-3)
        assert send["bytes"] == pytest.approx(574_680_000, rel=1e-3)
        assert times_ms(run, "replayed", job) == pytest.approx([FAIR_MS] * 10, rel=1e-3)


def test_a_time_shift_is_computed_and_played(run: Run) -> None:
    shift_ms = trial_of(run, "shifted")["given"]["j2"]["start_offset_ms"]["value"]
    assert trial_of(run, "shifted")["spec"]["jobs"]["j2"]["start_offset_ms"] == shift_ms
    assert times_ms(run, "shifted", "j1") + times_ms(run, "shifted", "j2") == pytest.approx([293] * 20, rel=1e-3)


def test_jobs_may_run_different_iterations(run: Run) -> None:
    cell = next(each for each in cells_of(run) if each.variant == "leaving")
    assert {job: [len(times) for times in each.values()] for job, each in cell.times.items()} == {"j1": [10], "j2": [3]}
    assert cell.times["j1"][1][:3] == pytest.approx([FAIR_MS] * 3)  # while both run
    assert cell.times["j2"][1] == pytest.approx([FAIR_MS] * 3)
    assert summarize_run(run), "and all that is made of it"
