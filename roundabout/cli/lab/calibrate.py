# SPDX-License-Identifier: Apache-2.0
"""`roundabout calibrate`: search constants of the lab that reproduce the results of a time-dilated run."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Runs
from roundabout.runner.run import Runner
from roundabout.spec import Experiment
from roundabout.store import Run
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.run_progress import show_progress
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo
from roundabout.testbeds.lab.calibration.calibration import DEFAULT, Calibration, load_calibration, store_calibration
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.provider import LabProvider

TRIES = 24


def command(
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="RUN", help="The time-dilated run whose results are the target.", show_default=False
        ),
    ],
    tries: Annotated[int, typer.Option(min=1, help="Number of candidates to try.")] = TRIES,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search, which determines the candidates.")] = 1,
    runs: Runs = Path("runs"),
    write: Annotated[bool, typer.Option("--write", help="Store the best constants as the lab's calibration.")] = False,
) -> None:
    """Search constants of the lab that reproduce the results of a time-dilated run, and show each candidate's results.

    The dilated run uses published parameters and needs no calibration.
    """
    undo_when_ended()
    console = Screen()

    def measure(calibration: Calibration, experiment: Experiment) -> Run:
        with show_progress(console) as observer:
            return Runner(LabProvider(calibration), observer, undo).start(experiment, experiment.name, runs)

    # `--help` need not wait for these imports.
    from roundabout.cli.lab.derivation import DilatedRun, derive_calibration  # noqa: PLC0415
    from roundabout.testbeds.lab.calibration.parameter_search import ParameterSearch  # noqa: PLC0415
    from roundabout.testbeds.lab.calibration.proposals import load_ranges  # noqa: PLC0415

    run = Run.open(source, runs)
    search = ParameterSearch(load_ranges(), load_calibration(), tries, seed)
    best = derive_calibration(DilatedRun.from_run(run), search, runs, console, measure)
    if write and best is not None and best.derived_from is not None:
        version = store_if_good(best, best.derived_from.misfit)
        console.print(f"{DEFAULT.name} is now version {version}: derived from run {run.id}")


def store_if_good(calibration: Calibration, misfit: float) -> int:
    """Store the calibration under the next version, and return the version. Raises LabError if `misfit` is above 1."""
    if misfit > 1:
        raise LabError(f"The best constants have a misfit of {misfit:.2f}; at most 1 is allowed. Nothing was stored.")
    version = load_calibration().version + 1
    store_calibration(calibration.model_copy(update={"version": version}))
    return version
