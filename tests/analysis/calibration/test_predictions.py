# SPDX-License-Identifier: Apache-2.0
"""What is predicted of an experiment: a row a cell, beside the same cell with all jobs alike."""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.calibration.predictions import Prediction, fair_version, typical_ms
from roundabout.cli.main import main
from roundabout.models.fluid.mean_field_dcqcn import SharedLinkScenario
from roundabout.spec import Transport, load_experiment

pytestmark = pytest.mark.unit

EXPERIMENT = """
name: one
about: one
topology: dumbbell-2x2
jobs:
  j1: {profile: short, workers: [s0, s2], transport: {T_us: 60}}
  j2: {profile: short, workers: [s1, s3]}
iterations: 2
transport: {name: dcqcn, set: sigcomm15, T_us: 125}
"""
# A tenth of vgg19-fig1, because the model takes 0.5 s of CPU for 10 ms of sending.
PROFILE = """
schema: 1
name: short
model: VGG19
source: constructed
phases:
  - {name: forward, compute_ms: 15, guess: constructed}
  - {name: allreduce, bytes: 57_468_000, alone_ms: 14.3, guess: constructed}
"""


def write(folder: Path, experiment: str) -> Path:
    """Write an experiment and its profile. Return the experiment's path."""
    (folder / "short.yaml").write_text(PROFILE)
    path = folder / "one.yaml"
    path.write_text(experiment)
    return path


def test_an_experiment_is_predicted_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = write(tmp_path, EXPERIMENT), tmp_path / "one.png"
    assert main(["predict", str(path), "--iterations", "1", "--json", "--picture", str(picture)]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["share"] > 1
    assert found["share"] == pytest.approx(found["first_gbps"]["j1"] / found["first_gbps"]["j2"])
    assert found["fair_ms"]["j1"] == found["fair_ms"]["j2"]
    slowest = max(times[-1] for times in found["iterations_ms"].values())
    assert found["speedup"] == pytest.approx(found["fair_ms"]["j1"][-1] / slowest)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.proof
def test_cells_of_different_numbers_of_jobs_are_predicted_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = EXPERIMENT.replace("dumbbell-2x2", "dumbbell-3x3").replace("s0, s2", "s0, s3").replace("s1, s3", "s1, s4")
    three = "{jobs: {j3: {profile: short, workers: [s2, s5]}}}"
    path = write(tmp_path, f"{one}factors: {{variant: {{pair: {{}}, three: {three}}}}}\n")
    assert main(["predict", str(path), "--iterations", "1", "--json"]) == 0
    found = capsys.readouterr()
    pair, three = json.loads(found.out)
    assert [len(each["iterations_ms"]) for each in (pair, three)] == [2, 3]
    assert pair["first_gbps"]["j1"] > three["first_gbps"]["j1"]
    assert "playing 2 cells: 50 %" in found.err  # those of two jobs, then those of three


def test_mltcp_is_held_against_what_it_is_based_on(tmp_path: Path) -> None:
    path = write(tmp_path, EXPERIMENT)
    (cell,) = load_experiment(path).cells
    mltcp = Transport.model_validate({"name": "mltcp_dcqcn", "T_us": 100, "slope": 1.75})
    jobs = {name: job.model_copy(update={"transport": mltcp}) for name, job in cell.spec.jobs.items()}
    fair = fair_version(cell.spec.model_copy(update={"jobs": jobs}))
    assert {job.transport.name for job in fair.jobs.values()} == {"dcqcn"}
    assert {job.transport.requested["T_us"] for job in fair.jobs.values()} == {100}


def test_jobs_that_do_not_keep_pace_count_by_their_later_iterations() -> None:
    starts = np.array([0.0, 100, 300, 450, 650])
    slow = np.stack([starts[:-1], starts[:-1], starts[1:]], axis=1)
    assert typical_ms(SharedLinkScenario({"slow": slow, "quick": slow / 2}, None, {}, 0.0), "slow") == np.median(
        [150, 200]
    )
    assert typical_ms(SharedLinkScenario({"slow": slow, "other": slow}, None, {}, 0.0), "slow") == 200


@pytest.mark.parametrize(("settled", "interleaved"), [(False, None), (True, 2)])
def test_once_settled_jobs_stay_as_they_are(settled: bool, interleaved: int | None) -> None:
    starts = 100.0 * np.arange(4)
    one = np.stack([starts, starts + 50, starts + 100], axis=1)
    other = one + np.array([[5.0], [50], [50], [50]])  # together in the first iteration
    meeting = SharedLinkScenario({"one": one, "other": other}, None, {}, 0.0, settled)
    (cell,) = load_experiment("steady-vgg19").cells[:1]
    assert Prediction(cell, meeting, meeting).interleaved == interleaved


def test_cells_outside_the_model_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ways = "plain: {}, tcp: {transport: {name: reno}}, ranked: {jobs: {j1: {priority: 2}}}"
    alike = EXPERIMENT.replace(", transport: {T_us: 60}", "")
    path = write(tmp_path, f"{alike}factors: {{variant: {{{ways}}}}}\n")
    assert main(["predict", str(path), "--iterations", "1", "--json"]) == 0
    found, *left_out = json.loads(capsys.readouterr().out)
    assert found["levels"] == {"variant": "plain"} and found["speedup"] == 1
    reasons = {each["levels"]["variant"]: each["left_out"] for each in left_out}
    assert "found transport reno" in reasons["tcp"] and "a queue of its own by its priority" in reasons["ranked"]
    assert main(["predict", str(path), "--iterations", "1"]) == 0
    lines = capsys.readouterr().out.replace("\n", " ")
    assert "left out ranked: job j1: found a queue of its own" in lines and "left out tcp: " in lines


def test_an_experiment_outside_the_model_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, EXPERIMENT.replace("set: sigcomm15, ", ""))
    assert main(["predict", str(path)]) == 1
    assert "error: found no thresholds" in capsys.readouterr().err
