# SPDX-License-Identifier: Apache-2.0
"""`roundabout explain`: attribute the delay of each job of a run to causes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundabout.cli.models.progress import show_part
from roundabout.cli.options import Json, Picture, Runs, WhichRun, check_picture, save_picture
from roundabout.store import Run
from roundabout.terminal.lines import print_warning
from roundabout.terminal.screen import Screen, show_paths

if TYPE_CHECKING:
    from analysis.attribution.attribution import Attribution


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    which: WhichRun = "last",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="LEVEL", help="Explain only this variant, or level of another factor. May be repeated."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model that plays the trials again: packets, or fluid, which is faster. Default: the model that "
            "computed the run, else packets.",
        ),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Explain only the first repetitions. Default: all.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Trials that are played at once. Default: one for each processor.")
    ] = None,
    divide: Annotated[
        bool,
        typer.Option(
            "--divide-transport",
            help="Also divide the congestion control's part by the jobs beside which it arises. Plays all groups of "
            "jobs, which takes longer.",
        ),
    ] = False,
    picture: Picture = None,
    report: Annotated[
        bool, typer.Option("--report", help="Store the delays in the run, and rewrite its report with them.")
    ] = False,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Attribute the delay of each job of a run to other jobs, links and causes.

    Models play each trial again without one cause after the other: link events, the congestion control, colliding
    paths, time-shift agents, the slowest worker, varying computing times, and each other job and cross traffic. The
    parts sum to the measured delay; what the models do not explain is a row of its own. Without --report, the run is
    not changed.
    """
    from analysis.attribution import attribution_tables as shown  # noqa: PLC0415 - takes long to import
    from analysis.render import screen  # noqa: PLC0415
    from roundabout.terminal.replays import explain_run  # noqa: PLC0415

    check_picture(picture)
    run = Run.open(which, runs)
    with show_part("playing trials again") as progress:
        found = explain_run(
            run,
            levels=only or (),
            model=model,
            repetitions=repetitions,
            divides_transport=divide,
            processors=jobs,
            progress=progress,
            warn=print_warning,
        )
    if picture:
        save_picture(shown.figure(found), picture)
    page = _rewrite_report(run, found) if report else None
    if as_json:
        print(json.dumps(found.record(), indent=2))
        return
    console = Screen()
    for line in shown.sentences(found):
        console.print(line, highlight=False)
    console.print(screen.table_renderable(shown.table(found)))
    console.print(shown.origin(found), highlight=False, style="dim")
    if page:
        show_paths(console, page, run.path)


def _rewrite_report(run: Run, found: "Attribution") -> Path:
    """Store the delays in the run, rewrite its report, and return the report's path. Raises RoundaboutError."""
    from analysis.reports.delays import store_delays  # noqa: PLC0415 - takes long to import
    from analysis.reports.report import write_report  # noqa: PLC0415

    store_delays(run, found)
    return write_report(run)
