# SPDX-License-Identifier: Apache-2.0
"""`roundabout predict`: what the mean field of DCQCN foretells of an experiment, without running it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Json
from roundabout.cli.screen import Screen
from roundabout.errors import UsageError
from roundabout.spec.load import load_experiment


def command(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="An experiment of the catalogue, or a file.")],
    iterations: Annotated[int, typer.Option(min=1, help="At most so many of each job.")] = 10,
    as_json: Json = False,
    picture: Annotated[Path | None, typer.Option(help="Draw share and speed-up over T into this PNG.")] = None,
) -> None:
    """Compute share, speed-up and when jobs interleave, by the model of SIGCOMM'15 and CoNEXT'16, for every cell."""
    from analysis import predictions  # noqa: PLC0415 - `--help` need not wait for it
    from analysis.render import screen  # noqa: PLC0415

    experiment = load_experiment(name)
    cells = [cell for cell in experiment.cells if len(cell.spec.jobs) > 1 and not cell.spec.one_job_at_a_time]
    if not cells:
        raise UsageError(f"{name}: found no trial in which jobs meet, expected one at least")
    found = predictions.predictions(cells, iterations)
    if picture:
        predictions.figure(found).savefig(picture, dpi=150)
    if as_json:
        print(json.dumps([predictions.record(each) for each in found], indent=2))
    else:
        Screen().print(screen.shown(predictions.table(experiment, found)))
