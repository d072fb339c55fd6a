# SPDX-License-Identifier: Apache-2.0
"""`roundabout predict`: predict an experiment's results by a model, without running it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundabout.cli.models.progress import show_part
from roundabout.cli.options import Jobs, Json, Only, Runs, check_picture, save_picture
from roundabout.cli.overrides import parse_overrides
from roundabout.core.errors import UsageError
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from roundabout.terminal.screen import Screen

if TYPE_CHECKING:
    from roundabout.spec.experiment import Experiment


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="An experiment of the catalog, or a file.")],
    iterations: Annotated[int, typer.Option(min=1, max=1000, help="Largest number of iterations of each job.")] = 10,
    as_json: Json = False,
    picture: Annotated[Path | None, typer.Option(help="Plot share and speed-up over T to this SVG or PNG.")] = None,
    beside: Annotated[
        str | None, typer.Option(metavar="RUN", help="Also show this run's measurements of the same cells.")
    ] = None,
    runs: Runs = Path("runs"),
    identified: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Predict packet by packet over what `roundabout identify NAME` has found, with the spread.",
        ),
    ] = None,
    candidates: Annotated[int, typer.Option(min=1, help="With --identified: how many candidates are played.")] = 9,
    only: Only = None,
    jobs: Jobs = None,
) -> None:
    """Predict share, speed-up and interleaving of every cell by the models of SIGCOMM'15 and CoNEXT'16.

    With --identified, predict packet by packet instead: with each of the transport's readings that fit a paper's direct
    measurements, so that every figure has a spread.
    """
    if identified:
        if picture or beside:
            raise UsageError("found --identified with --picture or --beside, expected it without them")
        experiment = load_experiment(name, changes=parse_overrides(None, only, None))
        _predict_identified(experiment, identified, iterations, candidates, jobs, as_json=as_json)
        return
    from analysis.calibration import model_comparison as held, predictions  # noqa: PLC0415
    from analysis.render import screen  # noqa: PLC0415

    check_picture(picture)
    experiment = load_experiment(name, changes=parse_overrides(None, only, None))
    cells = [cell for cell in experiment.cells if cell.spec.has_concurrent_jobs]
    if not cells:
        raise UsageError(f"{name}: found no trial in which jobs meet, expected one at least")
    run = Run.open(beside, runs) if beside else None
    if run:
        held.refuse_another(run, experiment)
    known, left_out = predictions.split_by_support(cells)
    with show_part(f"playing {len(known)} cells") as progress:
        found = predictions.predict_cells(known, iterations, progress)
    rows = held.compare_predictions(found, run) if run else []
    if picture:
        save_picture(predictions.figure(found), picture)
    if as_json:
        records = predictions.prediction_records(found, left_out)
        for record, row in zip(records, rows, strict=False):
            record["beside"] = row.record()
        print(json.dumps(records, indent=2))
        return
    Screen().print(screen.table_renderable(predictions.table(experiment, found)))
    for line in predictions.refusal_lines(left_out):
        Screen().print(line, highlight=False)
    if rows:
        Screen().print(screen.table_renderable(held.table(experiment, rows)))


def _predict_identified(  # noqa: PLR0913 - what the command was given
    experiment: "Experiment", identified: str, iterations: int, candidates: int, jobs: int | None, *, as_json: bool
) -> None:
    from analysis.calibration import identification, identified_predictions as predictions  # noqa: PLC0415
    from analysis.reading.cells import CellId  # noqa: PLC0415
    from analysis.render import screen  # noqa: PLC0415
    from roundabout.core.paths import IS_CHECKOUT  # noqa: PLC0415
    from roundabout.spec.transports.identification import FOLDER, read_identification  # noqa: PLC0415
    from roundabout.store.files import read_json  # noqa: PLC0415

    document = read_identification(identified)
    path = identification.accepted_path(document, FOLDER)
    record = read_json(path)
    accepted = identification.choose_spread(identification.read_accepted(document, record), candidates)
    known, left_out = predictions.split_by_support(experiment.cells)
    if not known:
        raise UsageError(f"{experiment.name}: found no trial in which jobs meet over DCQCN, expected one at least")
    with show_part(f"playing {len(known)} cells with {len(accepted)} candidates") as progress:
        found = predictions.predict_figures(experiment, known, accepted, iterations, jobs, progress)
    if as_json:
        print(json.dumps([each.record() for each in found], indent=2))
        return
    console = Screen()
    console.print(screen.table_renderable(predictions.table(experiment, found)))
    source = (
        f"{len(accepted)} of the {len(record['accepted'])} candidates that fit {identified}; {iterations} iterations"
    )
    console.print(source, highlight=False)
    if IS_CHECKOUT and record["engine"] != identification.hash_engine():
        console.print("They were identified with another revision of the engine.", highlight=False)
    if left_out:
        console.print(f"left out: {', '.join(CellId(each.levels).name for each in left_out)}", highlight=False)
