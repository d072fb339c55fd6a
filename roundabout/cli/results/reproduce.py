# SPDX-License-Identifier: Apache-2.0
"""`roundabout reproduce`: run everything that decides a row of the scoreboard."""

from pathlib import Path

from rich.console import Console

from analysis import papers
from analysis.reports.scoreboard import is_unaltered
from roundabout.cli.options import Runs
from roundabout.cli.runs.resume import load_experiment_of
from roundabout.runner.run import make_run_plan
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from roundabout.terminal.execution import execute, provider_for_experiment
from roundabout.terminal.lines import format_duration
from roundabout.terminal.screen import Screen
from roundabout.testbeds import find_provider


def command(runs: Runs = Path("runs")) -> None:
    """Run each experiment that decides a row of the scoreboard, in its default length, on the testbed that decides.

    Complete runs are left as they are, and interrupted ones are resumed: stop the command and repeat it at will.
    """
    console = Screen()
    pairs = papers.deciding_runs()
    for number, (name, testbed) in enumerate(pairs, start=1):
        console.print(f"{number} of {len(pairs)}: {name} on {testbed}", highlight=False)
        _complete(name, testbed, runs, console)


def _complete(name: str, testbed: str, runs: Path, console: Console) -> None:
    """Start or resume the run of an experiment on a testbed, unless it is complete."""
    run = _newest_run(name, testbed, runs)
    if run is None:
        experiment = load_experiment(name)
        provider = provider_for_experiment(experiment, testbed, None)
        plan = make_run_plan(provider, experiment, testbed_identity={}, artefacts={})
        console.print(f"{len(plan.trials)} trials, about {format_duration(plan.expected_s)}", highlight=False)
        execute(lambda runner: runner.start(experiment, name, runs, None), provider, as_json=False)
    elif {trial["key"] for trial in run.manifest["plan"]} <= run.committed():
        console.print(f"complete  {run.path}", soft_wrap=True, highlight=False)
    else:
        provider = find_provider(run.manifest.get("where", {}))
        execute(lambda runner: runner.resume(run, load_experiment_of(run)), provider, as_json=False)


def _newest_run(name: str, testbed: str, runs: Path) -> Run | None:
    """Return the newest run of an experiment in its default length on a testbed; None without one."""
    own = [
        run
        for run in Run.all(runs)
        if run.experiment == name
        and run.manifest["testbed"].get("kind") == testbed
        and run.manifest.get("length") is None
        and is_unaltered(run)
    ]
    return max(own, key=lambda run: run.id, default=None)
