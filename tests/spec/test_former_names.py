# SPDX-License-Identifier: Apache-2.0
"""Names that version 1.0 refuses: the error says the current name. What runs stored under them is read as before."""

from collections.abc import Callable
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.spec import Experiment, TrialSpec
from roundabout.spec.errors import SpecError
from roundabout.spec.loader import load_experiment

pytestmark = pytest.mark.unit

FILE = """\
name: renamed
about: Uses each renamed field
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
    fair: {depends_on: [alone], jobs: {j2: {inputs: {start_offset_ms: alone}}}}
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str) -> Path:
        path = tmp_path / "renamed.yaml"
        path.write_text(text)
        return path

    return to_file


@pytest.mark.parametrize(
    ("current", "former", "field"),
    [
        ("j1: {profile: vgg19-fig1, workers: [s0, s2], inputs", "takes", "jobs.j1.takes"),
        ("depends_on", "needs", "factors.variant.fair.needs"),
        ("queue: auto", "meant", "queue"),
    ],
)
def test_a_former_name_is_refused_with_the_current_one(write: Write, current: str, former: str, field: str) -> None:
    ahead, _, name = current.rpartition(" ")
    with pytest.raises(SpecError) as error:
        load_experiment(write(FILE.replace(current, f"{ahead} {former}".strip(), 1)))
    assert error.value.field == field
    assert error.value.hint == f"it is called {name} since version 1.0"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["cc", "mine.bpf.c"], "`cc` is called `judge` since version 1.0"),
        (["run", "unfair-vgg19", "--on", "slurm"], "`--on` is called `--executor` since version 1.0"),
        (["profile", "vgg19-fig1"], "write: roundabout profile measure JOB"),
        (["profile", "j1", "--from", "last"], "write: roundabout profile measure JOB --from RUN, or profile records"),
        (["profile", "VGG16", "--from-gpu=gpu.jsonl"], "write: roundabout profile gpu FILE"),
        (["profile", "--sample"], "write: roundabout profile records --sample"),
        (["resume", "--on=slurm"], "`--on` is called `--executor` since version 1.0"),
    ],
)
def test_a_former_command_or_option_is_refused_with_the_current_one(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert error in capsys.readouterr().err


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
