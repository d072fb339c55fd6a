# SPDX-License-Identifier: Apache-2.0
"""Former names of fields: files that use them are read like the current ones, with a warning."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from roundabout.spec import Experiment, TrialSpec
from roundabout.spec.assembly.overrides import parse_overrides
from roundabout.spec.errors import SpecError
from roundabout.spec.load import load_experiment

pytestmark = pytest.mark.unit

FILE = """\
name: renamed
about: Uses each renamed field in each place that may have it
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2], inputs: {profile: alone}}
  j2: {profile: vgg19-fig1, workers: [s1, s3]}
iterations: 5
transport: {name: reno}
queue: auto
factors:
  variant:
    alone: {one_job_at_a_time: true, jobs: {j1: {inputs: null}}}
    fair: {depends_on: [alone], queue: auto, jobs: {j2: {inputs: {start_offset_ms: alone}}}}
lengths:
  quick: {queue: auto, factors: {variant: {fair: {jobs: {j2: {inputs: {profile: alone}}}}}}}
"""
FORMER = FILE.replace("inputs:", "takes:").replace("depends_on:", "needs:").replace("auto", "meant")
RENAMED = ("`takes` is now `inputs`", "`needs` is now `depends_on`", "`queue: meant` is now `queue: auto`")

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str) -> Path:
        path = tmp_path / "renamed.yaml"
        path.write_text(text)
        return path

    return to_file


@pytest.mark.parametrize("length", [None, "quick"])
def test_a_file_with_former_names_is_the_same_experiment(write: Write, length: str | None) -> None:
    current = load_experiment(write(FILE), length=length)
    with pytest.warns(FutureWarning) as warned:
        former = load_experiment(write(FORMER), length=length)
    assert former == current
    assert {str(each.message).partition(";")[0] for each in warned} == set(RENAMED)


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("jobs.j1.takes.profile=null", "jobs.j1.inputs.profile=null"),
        ("jobs.j1.takes=null", "jobs.j1.inputs=null"),
        ("factors.variant.fair.needs=null", "factors.variant.fair.depends_on=null"),
        ("factors.variant.fair.jobs.j2.takes=null", "factors.variant.fair.jobs.j2.inputs=null"),
        ("factors.variant.fair={queue: meant}", "factors.variant.fair={queue: auto}"),
        ("factors.queue=[meant, step]", "factors.queue=[auto, step]"),
    ],
)
def test_an_override_may_use_a_former_name(write: Write, former: str, current: str) -> None:
    path = write(FILE.replace("[alone], queue: auto", "[alone], queue: thresholds"))
    expected = load_experiment(path, changes=parse_overrides(dict([current.split("=")])))
    with pytest.warns(FutureWarning, match="is now"):
        found = load_experiment(path, changes=parse_overrides(dict([former.split("=")])))
    assert found.cells == expected.cells != load_experiment(path).cells


def test_both_names_of_a_field_are_refused(write: Write) -> None:
    path = write(FILE.replace("depends_on: [alone]", "depends_on: [alone], needs: [alone]"))
    with (
        pytest.warns(FutureWarning),
        pytest.raises(SpecError, match="needs beside depends_on, its current name") as error,
    ):
        load_experiment(path)
    assert error.value.field == "factors.variant.fair.needs"


def test_a_stored_run_has_former_names(write: Write) -> None:
    """Read what version 0.1 stored: `takes` of a job and `needs` of a cell."""
    experiment = load_experiment(write(FILE))
    stored = experiment.model_dump(mode="json", by_alias=True)
    for cell in stored["cells"]:
        cell["needs"] = cell.pop("depends_on")
        for job in cell["spec"]["jobs"].values():
            job["takes"] = job.pop("inputs")
    assert Experiment.model_validate(stored) == experiment
    assert TrialSpec.model_validate(stored["cells"][1]["spec"]) == experiment.cells[1].spec


def test_a_command_hints_at_the_current_name_on_one_line(write: Write) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "roundabout.cli.main", "validate", write(FORMER)],
        capture_output=True,
        text=True,
        check=True,
    )
    hints = [line for line in said.stderr.splitlines() if line.startswith("hint: ")]
    assert {each.removeprefix("hint: ").partition(";")[0] for each in hints} == set(RENAMED)
