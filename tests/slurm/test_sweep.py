# SPDX-License-Identifier: Apache-2.0
"""`--executor slurm`: its submissions and errors, with programs that stand in for Slurm's."""

import os
import random
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, strategies

from analysis.reading.machines import read_machines
from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.runner import slurm, sweep
from roundabout.runner.slurm import Job, Slurm
from roundabout.spec import load_experiment
from roundabout.store import Run
from roundabout.testbeds.fluid.provider import FluidProvider
from tests.computed_runs import RUNNER
from tests.observers import Silent
from tests.slurm import stand_ins
from tests.slurm.sweeps import SPREAD, figures

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


@dataclass
class SlurmSweep:
    """A folder with the experiment, and the stand-ins' home."""

    home: Path
    file: Path
    runs: Path

    def run(self, *words: str) -> int:
        """The command line's status."""
        return main(["run", str(self.file), "--testbed", "fluid", "--runs", str(self.runs), *words])

    def submitted(self) -> list[str]:
        """What jobs were given, in their order."""
        return [path.read_text() for path in sorted(self.home.glob("words*"))]


@pytest.fixture
def slurm_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmSweep:
    home = tmp_path / "slurm"
    home.mkdir()
    stand_ins.install(home)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(sweep, "LOOK_S", 0.01)
    file = tmp_path / "spread.yaml"
    file.write_text(SPREAD)
    return SlurmSweep(home, file, tmp_path / "runs")


def test_a_sweep_gives_what_a_run_gives(slurm_sweep: SlurmSweep) -> None:
    experiment, observer = load_experiment(slurm_sweep.file), cast("Any", Silent())
    here = RUNNER.start(experiment, str(slurm_sweep.file), slurm_sweep.runs)
    swept = sweep.Sweep(FluidProvider(), observer, Slurm("spare"))
    there = swept.start(experiment, str(slurm_sweep.file), slurm_sweep.runs)
    assert (there.id != here.id, there.committed()) == (True, here.committed())
    assert figures(there) == figures(here)
    assert there.manifest["plan"] == here.manifest["plan"]
    assert read_machines(there).trials == {"n1": 2}
    assert there.listed_trials() == here.listed_trials()
    assert not (there.path / "slurm").exists()
    _, first, second = slurm_sweep.submitted()
    assert "--partition=spare" in first
    assert "--exclusive" not in first, "what is computed needs no node for itself"
    assert "--dependency" not in first
    assert "--dependency=afterany:2" in second


def test_a_slurm_job_without_output_is_explained(slurm_sweep: SlurmSweep, capsys: pytest.CaptureFixture[str]) -> None:
    (slurm_sweep.home / "blind").touch()
    assert slurm_sweep.run("--executor", "slurm") == 1
    said = capsys.readouterr().err
    assert "no plan was made: jobs of Slurm ended without output" in said
    assert "put --runs on a file system that they share" in said
    assert not Run.all(slurm_sweep.runs), "nothing is left of a run that never was"


@pytest.mark.parametrize(
    ("ahead", "on", "said"),
    [
        ("", "slurm:nowhere", "found no partition 'nowhere', expected one of: main, spare"),
        ("down", "slurm", "Slurm did not take sinfo: slurm_load_partitions: Unable to contact slurm controller"),
        ("empty", "slurm:labs", "found no partition 'labs': Slurm lists none to this user"),
        ("", "kubernetes", "--executor: found 'kubernetes', expected slurm or slurm:PARTITION"),
        ("", "slurm:", "--executor: found 'slurm:', expected slurm or slurm:PARTITION"),
    ],
)
def test_a_missing_or_failing_slurm_is_one_message(
    slurm_sweep: SlurmSweep, ahead: str, on: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if ahead:
        (slurm_sweep.home / ahead).touch()
    assert slurm_sweep.run("--executor", on) != 0
    assert said in capsys.readouterr().err
    assert not Run.all(slurm_sweep.runs)


def test_a_machine_without_slurm_is_one_message(
    slurm_sweep: SlurmSweep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert slurm_sweep.run("--executor", "slurm") == 1
    assert "found no sinfo on this machine, expected Slurm's" in capsys.readouterr().err


def test_an_interrupt_leaves_no_slurm_job(slurm_sweep: SlurmSweep) -> None:
    (slurm_sweep.home / "held").touch()

    def interrupt() -> None:
        while not (slurm_sweep.home / "queue").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt).start()
    assert slurm_sweep.run("--executor", "slurm") == 130
    assert "--name=roundabout-" in (slurm_sweep.home / "cancelled").read_text()
    assert not (slurm_sweep.home / "queue").exists()


@pytest.mark.parametrize(("outage", "why"), [("away", "Unable to contact slurm controller"), ("stuck", "1 completing")])
def test_an_interrupt_during_an_outage_names_the_jobs_left(
    outage: str, why: str, slurm_sweep: SlurmSweep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (slurm_sweep.home / "held").touch()
    monkeypatch.setattr(sweep, "END_TIMEOUT_S", 0.05)

    def interrupt() -> None:
        while not (slurm_sweep.home / "queue").exists():
            time.sleep(0.01)
        (slurm_sweep.home / outage).touch()
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt).start()
    assert slurm_sweep.run("--executor", "slurm") == 130
    said = capsys.readouterr().err
    assert f"error: jobs of the run may be left on Slurm, after 0.05 s of waiting for their end: {why}" in said.replace(
        "Slurm did not take squeue: ", ""
    )
    assert "cancel them: scancel --name=roundabout-" in said


def test_an_outage_does_not_hide_what_ended_the_run(
    slurm_sweep: SlurmSweep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (slurm_sweep.home / "sinks").touch()
    monkeypatch.setattr(sweep, "END_TIMEOUT_S", 0.05)
    assert slurm_sweep.run("--executor", "slurm") == 1
    said = capsys.readouterr().err
    assert "error: Slurm did not take sbatch: Batch job submission failed" in said
    assert "jobs of the run may be left on Slurm" in said
    assert "cancel them: scancel --name=roundabout-" in said


def test_a_program_of_slurms_that_hangs_is_given_up(slurm_sweep: SlurmSweep, monkeypatch: pytest.MonkeyPatch) -> None:
    (slurm_sweep.home / "sinfo").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(slurm, "ANSWER_TIMEOUT_S", 0.1)
    with pytest.raises(slurm.SlurmError, match=r"Slurm did not answer sinfo within 0\.1 s"):
        Slurm("main").check()


def test_an_array_does_the_trial_of_its_number(tmp_path: Path) -> None:
    job = Job(tmp_path / "a run", alone=True)
    lines = job.script(["k1", "k2"]).splitlines()
    assert lines[:3] == ["#!/bin/sh", "set -- k1 k2", 'shift "$SLURM_ARRAY_TASK_ID"']
    assert lines[3].endswith(f"""-m roundabout.cli.main trial '{tmp_path}/a run' "$1\"""")
    assert job.script([]).splitlines()[1].endswith(f"trial '{tmp_path}/a run'")


def test_a_slurm_partition_is_parsed() -> None:
    assert Slurm.parse("slurm") == Slurm(None)
    assert Slurm.parse("slurm:gpu") == Slurm("gpu")
    with pytest.raises(UsageError):
        Slurm.parse("slurmy")


@dataclass(frozen=True)
class Planned:
    key: str
    depends_on: tuple[str, ...]


@given(strategies.integers(0, 30), strategies.randoms(use_true_random=False))
def test_a_wave_depends_only_on_earlier_waves(count: int, random: random.Random) -> None:
    trials: list[Any] = []
    for number in range(count):
        needs = random.sample([each.key for each in trials], min(len(trials), random.choice([0, 0, 1, 2])))
        trials.append(Planned(str(number), (*needs, "done before")))
    found = sweep.group_in_waves(trials)
    assert sorted(each.key for wave in found for each in wave) == sorted(each.key for each in trials)
    before = {"done before"}
    for wave in found:
        assert all(before.issuperset(each.depends_on) for each in wave)
        before |= {each.key for each in wave}
    for earlier, later in pairwise(found):  # none waits for longer than it must
        assert all({*each.depends_on} & {other.key for other in earlier} for each in later)
