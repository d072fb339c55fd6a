# SPDX-License-Identifier: Apache-2.0
"""What is foretold of an experiment: a row a cell, beside the same cell with all jobs alike."""

import json
from pathlib import Path

import pytest

from roundabout.cli.main import main

EXPERIMENT = """
name: one
about: one
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2], transport: {T_us: 100}}
  j2: {profile: vgg19-fig1, workers: [s1, s3]}
iterations: 2
transport: {name: dcqcn, set: hpcc-paper, T_us: 125}
"""


def test_an_experiment_is_foretold_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "one.yaml", tmp_path / "one.png"
    path.write_text(EXPERIMENT)
    assert main(["predict", str(path), "--iterations", "1", "--json", "--picture", str(picture)]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["share"] > 1
    assert found["share"] == pytest.approx(found["first_gbps"]["j1"] / found["first_gbps"]["j2"])
    assert found["fair_ms"]["j1"] == found["fair_ms"]["j2"]
    slowest = max(times[-1] for times in found["iterations_ms"].values())
    assert found["speedup"] == pytest.approx(found["fair_ms"]["j1"][-1] / slowest)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_the_model_does_not_know_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(EXPERIMENT.replace("set: hpcc-paper, ", ""))
    assert main(["predict", str(path)]) == 1
    assert "error: found no thresholds" in capsys.readouterr().err
