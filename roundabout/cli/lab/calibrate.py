# SPDX-License-Identifier: Apache-2.0
"""`roundabout calibrate`: a search for constants of the lab with which it does what a dilated run did."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Runs
from roundabout.runner.run import Runner
from roundabout.spec import Experiment
from roundabout.store import Run
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.live_display import show_progress
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo
from roundabout.testbeds.lab.calibration.calibration import DEFAULT, Calibration, load_calibration, store_calibration
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.provider import LabProvider

TRIES = 24


def command(
    source: Annotated[
        str,
        typer.Option("--from", metavar="RUN", help="The run to meet, in which time was dilated.", show_default=False),
    ],
    tries: Annotated[int, typer.Option(min=1, help="How many sets of constants to try.")] = TRIES,
    seed: Annotated[int, typer.Option(min=0, help="Of the search: another seed tries other constants.")] = 1,
    runs: Runs = Path("runs"),
    write: Annotated[bool, typer.Option("--write", help="Make the best constants the lab's calibration.")] = False,
) -> None:
    """Search constants with which the lab does what a dilated run did, and show the results of each try.

    In the dilated run parameters are published ones, and nothing is calibrated.
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
    """Store the calibration, and return its version. Raises LabError if its misfit is above 1."""
    if misfit > 1:
        raise LabError(f"The best constants have a misfit of {misfit:.2f}; at most 1 is allowed. Nothing was stored.")
    version = load_calibration().version + 1
    store_calibration(calibration.model_copy(update={"version": version}))
    return version
