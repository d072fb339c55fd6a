# SPDX-License-Identifier: Apache-2.0
"""`roundabout predict`: predict an experiment's results by DCQCN's mean-field model, without running it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from roundabout.cli.options import Json, Runs, check_picture, save_picture
from roundabout.core.errors import UsageError
from roundabout.spec.load import load_experiment
from roundabout.store import Run
from roundabout.terminal.screen import Screen


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="An experiment of the catalog, or a file.")],
    iterations: Annotated[int, typer.Option(min=1, max=1000, help="Largest number of iterations of each job.")] = 10,
    as_json: Json = False,
    picture: Annotated[Path | None, typer.Option(help="Plot share and speed-up over T to this SVG or PNG.")] = None,
    beside: Annotated[
        str | None, typer.Option(metavar="RUN", help="Also show this run's measurements of the same cells.")
    ] = None,
    runs: Runs = Path("runs"),
) -> None:
    """Predict share, speed-up and interleaving of every cell by the models of SIGCOMM'15 and CoNEXT'16."""
    from analysis.calibration import model_comparison as held, predictions  # noqa: PLC0415
    from analysis.render import screen  # noqa: PLC0415

    check_picture(picture)
    experiment = load_experiment(name)
    cells = [cell for cell in experiment.cells if cell.spec.has_concurrent_jobs]
    if not cells:
        raise UsageError(f"{name}: found no trial in which jobs meet, expected one at least")
    run = Run.open(beside, runs) if beside else None
    if run:
        held.refuse_another(run, experiment)
    known, left_out = predictions.split_by_support(cells)
    with _show_progress(len(known)) as told:
        found = predictions.predict_cells(known, iterations, told)
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


@contextmanager
def _show_progress(cells: int) -> Iterator[Callable[[float], None]]:
    """Show the finished part on stderr: a bar, or a line for each tenth where that cannot be drawn."""
    console = Screen(stderr=True)
    what = f"playing {cells} cells"
    if console.is_terminal and not console.is_dumb_terminal:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(what, total=1.0)
            yield lambda part: bar.update(task, completed=part)
        return
    said = -1

    def say(part: float) -> None:
        nonlocal said
        if (tenths := int(10 * part)) > said:
            said = tenths
            console.print(f"{what}: {10 * tenths} %", highlight=False)

    yield say
