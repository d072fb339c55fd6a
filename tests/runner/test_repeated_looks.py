# SPDX-License-Identifier: Apache-2.0
"""Runs until decided, on the flow-level model with random cross traffic: looks, kept trials, resuming, the budget."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.reports.summary import summarize_run
from roundabout.cli.main import main
from roundabout.cli.runs.resume import load_experiment_of
from roundabout.runner.run import Runner
from roundabout.runner.run_store import ChangedError
from roundabout.spec import load_experiment
from roundabout.spec.assembly.overrides import overrides_from_values
from roundabout.store import Run
from roundabout.store.look_schedule import LookSchedule
from roundabout.terminal.repeated_looks import run_looks
from roundabout.testbeds import undo
from roundabout.testbeds.fluid.provider import FluidProvider
from tests.computed_runs import RUNNER
from tests.observers import Silent

pytestmark = pytest.mark.unit

# Medians at 18 Gbit/s are 248 to 257 ms. Without load a trial has no random parts and runs once, without an interval.
NOISY = """
schema: 1
name: noisy
about: A ring beside cross traffic
topology: configuration-b
jobs: {dnn: {profile: resnet50-ring3, workers: [s0, s1, s3]}}
transport: {name: dcqcn}
iterations: 5
repetitions: 2
cross_traffic: {cross: {kind: burst, volumes: exact, from: s2, to: [s0]}}
factors: {load_gbps: [0, 18]}
expect:
  - {what: median iteration time, at: {load_gbps: 18}, at_most: 254, basis: predicted}
  - {what: median iteration time, at: {load_gbps: 0}, at_most: 161, basis: predicted}
"""
LOOKS = LookSchedule((4, 8, 16, 32), 600)


class Interrupted(Silent):
    """An observer that interrupts the run at the start of a trial."""

    def __init__(self, at: int) -> None:
        self.left = at

    def trial_started(self, *_: Any) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("analysis.reports.report.write_report", lambda run: run.path / "report.html")
    path = tmp_path / "noisy.yaml"
    path.write_text(NOISY)
    return path


def call(file: Path, *words: str) -> Run:
    assert main(["run", str(file), "--testbed", "fluid", "--runs", str(file.parent), *words]) == 0
    return Run.open("last", file.parent)


def begin(runner: Runner, file: Path, looks: LookSchedule | None = LOOKS) -> Run:
    experiment = load_experiment(file, changes=overrides_from_values({"repetitions": 4}))
    return runner.start(experiment, str(file), file.parent, looks=looks)


def verdicts(run: Run) -> list[tuple[str, str]]:
    own = [each for each in summarize_run(run).expectations if each.kind != "claim"]
    return [(each.verdict, each.undecided) for each in own]


def test_repetitions_are_added_until_each_verdict_is_decided_that_can_be(file, capsys):
    run = call(file, "--until-decided", "10")
    said = capsys.readouterr().out
    assert verdicts(run) == [("pass", ""), ("inconclusive", "undecidable by repetitions")]
    assert run.manifest["looks"]["repetitions"] == [4, 8, 16, 32]
    assert run.manifest["experiment"]["repetitions"] == run.manifest["experiment"]["set"]["repetitions"] == 16
    assert "undecided after 8 repetitions: 1; continuing with 16" in said
    assert "95 % intervals hold at all 4 looks together" in said
    assert load_experiment(run.path / "experiment.yaml").repetitions == 16
    assert run.experiment_fault() is None
    # No trial ran twice, and the first ones are those of a run with four repetitions.
    assert {(record["attempt"], record["valid"]) for record in run.trials()} == {(1, True)}
    assert len(run.trials()) == 17
    assert begin(RUNNER, file, None).committed() < run.committed()


def test_intervals_of_a_run_with_looks_are_wider(file):
    with_looks, without = (summarize_run(begin(RUNNER, file, looks)) for looks in (LOOKS, None))
    (wide, narrow) = (each.expectations[0] for each in (with_looks, without))
    assert wide.measured == narrow.measured
    assert wide.ci95[0] < narrow.ci95[0] <= narrow.ci95[1] < wide.ci95[1]
    assert (with_looks.looks, without.looks) == (4, 1)


@pytest.mark.proof
def test_an_interrupted_run_goes_on_with_its_looks(file, capsys):
    runner = Runner(FluidProvider(), Interrupted(at=8), undo)  # in the second look
    with pytest.raises(KeyboardInterrupt):
        run_looks(runner, lambda: begin(runner, file), load_experiment_of)
    broken = Run.open("last", file.parent)
    assert len(broken.committed()) == 7
    assert main(["resume", str(broken.path)]) == 0
    resumed = Run(broken.path)
    assert resumed.committed() == call(file, "--until-decided", "10").committed()
    assert verdicts(resumed)[0] == ("pass", "")


def test_without_a_budget_there_is_one_look_with_plain_intervals(file):
    run = call(file, "--until-decided", "0", "--repetitions", "5")
    assert run.planned_looks == 1
    assert run.manifest["experiment"]["repetitions"] == 5
    ((word, reason), _) = verdicts(run)
    assert word == "inconclusive"
    assert reason.startswith("too few repetitions: about ")


def test_a_spent_budget_ends_the_run(file):
    run = run_looks(RUNNER, lambda: begin(RUNNER, file, LookSchedule((4, 8, 16, 32), 1e-3)), load_experiment_of)
    assert run.manifest["experiment"]["repetitions"] == 4
    assert run.manifest["looks"]["spent_s"] > 0


def test_an_experiment_that_changed_meanwhile_adds_no_trial(file):
    run = begin(RUNNER, file)
    file.write_text(NOISY.replace("iterations: 5", "iterations: 6"))
    with pytest.raises(ChangedError):
        RUNNER.extend(run, load_experiment_of(run, 8))
    assert len(Run(run.path).manifest["plan"]) == len(run.committed()) == 5


def test_the_plan_lists_the_looks(file, capsys):
    words = ["plan", str(file), "--testbed", "fluid", "--until-decided", "60"]
    assert main([*words, "--json"]) == 0
    looks = json.loads(capsys.readouterr().out)["looks"]
    assert [(each["repetitions"], each["trials"], each["is_allowed"]) for each in looks] == [
        (4, 5, True), (8, 9, True), (16, 17, True), (32, 33, True),
    ]  # fmt: skip
    assert main(words) == 0
    assert "within the budget" in capsys.readouterr().out


def test_slurm_does_not_run_until_decided(file, capsys):
    assert main(["run", str(file), "--executor", "slurm", "--until-decided", "1"]) == 2
    assert "found --executor and --until-decided" in capsys.readouterr().err
