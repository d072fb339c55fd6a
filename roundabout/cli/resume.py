# SPDX-License-Identifier: Apache-2.0
"""`roundabout resume`: what is left of a run that was interrupted."""

from pathlib import Path

from roundabout.cli.options import RunJson, Runs, WhichRun
from roundabout.cli.running import execute
from roundabout.spec.changes import SET, from_values
from roundabout.spec.load import load_experiment
from roundabout.store import Run
from roundabout.testbeds import facility


def command(
    which: WhichRun = "last",
    runs: Runs = Path("runs"),
    as_json: RunJson = False,
) -> None:
    """Finish a run that was interrupted. Trials that were committed stay as they are."""
    run = Run.open(which, runs)
    changed = run.manifest["experiment"].get(SET, {})
    which_file = run.manifest["which"] or run.path / "experiment.yaml"
    experiment = load_experiment(which_file, length=run.manifest.get("length"), changes=from_values(changed))
    where = facility(run.manifest.get("where", {}))
    execute(lambda runner: runner.resume(run, experiment), where, as_json=as_json)
