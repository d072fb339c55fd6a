# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/experiments.md: its examples run; docs/reference/experiments/files.md: it has every field."""

import re
import shlex
from pathlib import Path

import pytest
from pydantic import BaseModel

from roundabout import load_experiment, run_experiment
from roundabout.cli.main import main
from roundabout.cli.runs.resume import load_experiment_of
from roundabout.spec import Experiment
from roundabout.spec.capture import Capture
from roundabout.spec.cassini import Cassini
from roundabout.spec.cluster import Cluster, TraceWindow
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.spec.experiment import ExperimentHeader
from roundabout.spec.job import Job
from roundabout.spec.priority_queues import WeightedQueues
from roundabout.spec.profile import Phase, Profile, ProfileScaling
from roundabout.spec.shared_buffer import SharedBuffer
from roundabout.spec.tcp import Tcp
from roundabout.spec.topology import Link, Topology
from roundabout.spec.treatment import Treatment
from roundabout.store import Run

pytestmark = pytest.mark.unit

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "how-to/experiments.md").read_text()
THREE_JOBS, SWEEP = (part.partition("```")[0] for part in TEXT.split("```yaml\n")[1:])
PROGRAM = TEXT.partition("```python\n")[2].partition("```")[0]
FIELDS = (DOCS / "reference/experiments/files.md").read_text().split("\n## ")
TABLES = {title: table for title, _, table in (section.partition("\n") for section in FIELDS)}
DOCUMENTED: dict[str, list[type[BaseModel]]] = {
    "The file": [ExperimentHeader],
    "A trial": [Treatment, ProfileScaling, Tcp, WeightedQueues, Cassini, Capture],
    "A job": [Job],
    "A cluster": [Cluster, TraceWindow],
    "Cross traffic": [CrossTraffic],
    "A profile": [Profile, Phase],
    "A topology": [Topology, Link],
    "A buffer": [SharedBuffer],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which commands are given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("title", DOCUMENTED)
def test_every_field_is_documented(title: str) -> None:
    documented = set(re.findall(r"`(\w+)`", TABLES[title]))
    fields = {each.alias or name for model in DOCUMENTED[title] for name, each in model.model_fields.items()}
    assert fields - documented == set()


def test_three_jobs_run(folder: Path) -> None:
    (folder / "three-jobs.yaml").write_text(THREE_JOBS)
    run = run_experiment(load_experiment("three-jobs.yaml", length="quick"), testbed="fluid")
    assert {(row["variant"], row["job"]) for row in run.table("iterations").to_pylist()} == {
        (variant, job) for variant in ("alone", "fair", "more") for job in ("j1", "j2", "j3")
    }
    assert load_experiment(run.path / "experiment.yaml").cells == load_experiment("three-jobs.yaml").cells


def test_the_program_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sweep-of-t.yaml").write_text(SWEEP)
    found: dict[str, object] = {}
    exec(compile(PROGRAM, "docs/how-to/experiments.md", "exec"), found)
    run = found["last"]
    assert isinstance(run, Run)
    assert run.manifest["experiment"]["set"] == {"iterations": 5, "repetitions": 1}
    assert len(run.manifest["plan"]) == 4
    experiment = found["experiment"]
    assert isinstance(experiment, Experiment)
    assert load_experiment_of(run).cells == experiment.cells
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "0.0"
    assert "'job': 'j2', 'ms': " in said[1]


def test_a_new_experiment_runs(folder: Path) -> None:
    assert main(["new", "my-first"]) == 0
    run = run_experiment(load_experiment("my-first.yaml", length="quick"), testbed="fluid")
    assert {trial["variant"] for trial in run.trials()} == {"alone", "fair", "unfair"}
    assert all(trial["valid"] for trial in run.trials())


@pytest.mark.parametrize("line", re.findall(r"^    roundabout (plan unf.*|plan web.*)$", TEXT, re.MULTILINE))
def test_commands_are_taken(line: str) -> None:
    assert main(shlex.split(line)) == 0
