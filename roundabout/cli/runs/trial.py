# SPDX-License-Identifier: Apache-2.0
"""`roundabout trial`: execute one trial in a Slurm job, while another process holds the run's lock."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.runs.resume import load_experiment_of
from roundabout.runner.progress_events import Follower
from roundabout.runner.run import Runner
from roundabout.store import Run
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.run_progress import PlainView
from roundabout.terminal.screen import Screen
from roundabout.testbeds import find_provider, undo


def command(
    which: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="The trial's key.")] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Measure a committed trial again, to compare machines.")
    ] = False,
) -> None:
    """Execute one trial of a run with `--executor slurm`. Without KEY, make the run's plan."""
    from analysis.reading.trial_inputs import resolve_inputs  # noqa: PLC0415 - takes a second to import

    undo_when_ended()
    run = Run.open(which)
    experiment, where = load_experiment_of(run), find_provider(run.recorded("where"))
    # Many write into one run: what shows it live is its submitter's.
    runner = Runner(where, Follower(PlainView(Screen())), undo, resolve_inputs=resolve_inputs)
    if key is None:
        runner.plan(run, experiment)
    else:
        runner.trial(run, experiment, key, reference=reference)
