# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/add/trainer.md: its program and its model, from a folder outside the tree, in a real lab."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.program_list import program_paths
from roundabout.spec.trainers import MODELS
from roundabout.store import Run

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add/trainer.md").read_text()
PROGRAM, MODEL = (part.partition("```")[0] for part in PAGE.split("```python\n")[1:])
EXPERIMENT = """
name: napping
about: One job computes only, the other one sends as ever
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2], trainer: {name: napper, depth: 0.5}}
  j2: {profile: vgg19-fig1, workers: [s1, s3], iterations: 2}
iterations: 3
transport: {name: reno}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("trainers/napper/napper.py", PROGRAM), ("roundabout/spec/trainers/napper.py", MODEL)):
        path = tmp_path / "outside" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (tmp_path / "napping.yaml").write_text(EXPERIMENT)
    return tmp_path


def roundabout(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ROUNDABOUT_PATH": str(folder / "outside"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "roundabout.cli.main", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.proof
def test_two_files_are_all_that_a_trial_in_the_lab_needs(folder: Path) -> None:
    assert len([path for path in (folder / "outside").rglob("*") if path.is_file()]) == 2
    done = roundabout(folder, "run", "./napping.yaml", "--testbed", "lab", "--json")
    assert done.returncode == 0, done.stderr
    run = Run.open("last", folder / "runs")
    assert "outside/napper.py" in run.manifest["artefacts"]
    rows: list[dict[str, Any]] = run.table("iterations", valid_only=False).to_pylist()
    slept_ms = sorted((row["host"], row["iteration_ms"]) for row in rows if row["job"] == "j1")
    assert slept_ms == [(host, 75.0) for host in ("s0", "s2") for _ in range(3)]
    assert {(row["rank"], row["iteration"]) for row in rows if row["job"] == "j2"} == {
        (rank, number) for rank in range(2) for number in range(2)
    }
    assert {row["job"] for row in run.table("flows", valid_only=False).to_pylist()} == {"j2"}


@pytest.mark.parametrize(
    ("passage", "replacement", "said"),
    [
        (
            "depth: 0.5",
            "deepness: 0.5",
            "trainer.deepness: found the unknown field 'deepness', expected one of name, depth",
        ),
        ("depth: 0.5", "depth: 0", "trainer.depth: found 0, expected more than 0"),
        (
            "name: napper",
            "name: nap",
            "trainer.name: found 'nap', expected one of 'ddp', 'deepspeed', 'dlrm', 'horovod', 'napper',",
        ),
    ],
)
def test_a_plugin_trainers_fields_are_checked_in_experiments(
    folder: Path, passage: str, replacement: str, said: str
) -> None:
    (folder / "napping.yaml").write_text(EXPERIMENT.replace(passage, replacement))
    done = roundabout(folder, "validate", "./napping.yaml")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_the_schema_for_editors_has_it(folder: Path) -> None:
    assert roundabout(folder, "schema", "--folder", str(folder / "schema")).returncode == 0
    schema = json.loads((folder / "schema" / "experiment.json").read_text())
    assert "of what the profile computes" in json.dumps(schema)


def test_a_program_of_the_tree_is_listed_once() -> None:
    """The one line: what provisions hosts and what doctor looks at follow from it."""
    for model in MODELS.values():
        assert model.program in program_paths("hosts")
        assert model.source() == ROOT / model.program
