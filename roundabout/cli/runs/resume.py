# SPDX-License-Identifier: Apache-2.0
"""`roundabout resume`: execute the missing trials of an interrupted run."""

from pathlib import Path

from roundabout.cli.options import Executor, RunJson, Runs, WhichRun
from roundabout.runner.run import Runner
from roundabout.runner.sweep import Sweep
from roundabout.spec import Experiment
from roundabout.spec.assembly.overrides import SET, overrides_from_values
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from roundabout.terminal.execution import execute
from roundabout.terminal.lines import print_warning
from roundabout.terminal.repeated_looks import run_looks
from roundabout.terminal.screen import Screen
from roundabout.terminal.series_execution import show_comparison_with_newest
from roundabout.testbeds import find_provider


def command(
    which: WhichRun = "last",
    runs: Runs = Path("runs"),
    executor: Executor = None,
    as_json: RunJson = False,
) -> None:
    """Execute the missing trials of an interrupted run. Committed trials do not change.

    A run until decided continues with its next look, but not on Slurm. At the end the run stands beside the newest run
    of its experiment on each other testbed, as after `run`.
    """
    run = Run.open(which, runs)
    if fault := run.experiment_fault():
        print_warning(fault)
    experiment = load_experiment_of(run)
    where = find_provider(run.manifest.get("where", {}))

    def work(runner: Runner | Sweep) -> Run:
        if isinstance(runner, Sweep):
            return runner.resume(run, experiment)
        return run_looks(runner, lambda: runner.resume(run, experiment), load_experiment_of)

    run = execute(work, where, as_json=as_json, executor=executor)
    show_comparison_with_newest(run, Screen(stderr=as_json), run.path.parents[1])


def load_experiment_of(run: Run, repetitions: int | None = None) -> Experiment:
    """Load a run's experiment again from its original file or name, with the run's overrides. Raises SpecError.

    With `repetitions`, the experiment has as many.
    """
    which = run.recorded("which")
    if which is None:  # a program built it
        return load_experiment(run.path / "experiment.yaml")
    more = {} if repetitions is None else {"repetitions": repetitions}
    changes = overrides_from_values({**run.manifest["experiment"].get(SET, {}), **more})
    return load_experiment(which, length=run.manifest.get("length"), changes=changes)
