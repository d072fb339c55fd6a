# SPDX-License-Identifier: Apache-2.0
"""`roundabout explain`: attribute the delay of each job of a run to causes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundabout.cli.models.progress import show_part
from roundabout.cli.options import Json, Picture, Runs, WhichRun, check_capacity, check_picture, save_picture
from roundabout.core.errors import UsageError
from roundabout.store import Run
from roundabout.terminal.lines import print_warning
from roundabout.terminal.screen import Screen, show_paths

if TYPE_CHECKING:
    from analysis.attribution.attribution import Attribution
    from analysis.attribution.recorded_trial import RecordSources


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
    processors: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Trials that are played at once. Default: one for each processor."),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Explain the jobs of a cluster in place of a run: a folder of profiler records for each job, or a "
            "file of byte counters.",
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="For --records: hosts, cables and routes; also a topology.conf of Slurm or HyperNodes of Volcano.",
        ),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For --records: hosts of each job, YAML or the output of `squeue --json`."),
    ] = None,
    alone: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="For --records: records of jobs that had the network to themselves."),
    ] = None,
    transport: Annotated[
        str | None, typer.Option(metavar="NAME", help="For --records: congestion control of the jobs, if it is known.")
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option(metavar="GBPS", help="For --records: payload rate of the cables of a scheduler's topology."),
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
    not changed. With --records and --topology, the jobs of a cluster are explained by what they recorded.
    """
    from roundabout.terminal.replays import explain_records, explain_run  # noqa: PLC0415 - takes long to import

    check_picture(picture)
    sources = _record_sources(records, topology, jobs, alone, transport, capacity)
    if sources:
        _refuse_options_of_runs(which, only, repetitions, report=report)
        with show_part("playing jobs again") as progress:
            found = explain_records(
                sources,
                model=model,
                divides_transport=divide,
                processors=processors,
                progress=progress,
                warn=print_warning,
            )
        _show(found, picture, (), as_json=as_json)
        return
    run = Run.open(which, runs)
    with show_part("playing trials again") as progress:
        found = explain_run(
            run,
            levels=only or (),
            model=model,
            repetitions=repetitions,
            divides_transport=divide,
            processors=processors,
            progress=progress,
            warn=print_warning,
        )
    written = (_rewrite_report(run, found), run.path) if report else ()
    _show(found, picture, written, as_json=as_json)


def _record_sources(  # noqa: PLR0913, PLR0917 - one an option
    records: Path | None,
    topology: str | None,
    jobs: Path | None,
    alone: Path | None,
    transport: str | None,
    capacity: float | None,
) -> "RecordSources | None":
    """Return the files that describe a cluster's jobs; None without --records. Raises UsageError."""
    from analysis.attribution.recorded_trial import RecordSources  # noqa: PLC0415 - takes long to import

    options = {"jobs": jobs, "alone": alone, "transport": transport, "capacity": capacity, "topology": topology}
    if records is None:
        if given := [name for name, value in options.items() if value is not None]:
            raise UsageError(f"--{given[0]}: found no --records, expected it", "a run has its own jobs and network")
        return None
    if topology is None:
        hint = "name one, or write one with `roundabout new --from`: records do not show cables"
        raise UsageError("--records: found no --topology, expected it", hint)
    if capacity is not None:
        check_capacity(capacity)
    return RecordSources(records, topology, jobs, alone, capacity, transport)


def _refuse_options_of_runs(which: str, only: list[str] | None, repetitions: int | None, *, report: bool) -> None:
    given = {
        f"the run {which}": which != "last",
        "--only": only,
        "--repetitions": repetitions,
        "--report": report,
    }
    if found := [name for name, value in given.items() if value]:
        raise UsageError(f"--records: found {found[0]} beside it, expected records alone", "records are no run")


def _show(found: "Attribution", picture: Path | None, written: Sequence[Path], *, as_json: bool) -> None:
    """Print the delays as JSON, or as sentences and a table, with the paths that were written; draw a picture."""
    from analysis.attribution import attribution_tables as shown  # noqa: PLC0415 - takes long to import
    from analysis.render import screen  # noqa: PLC0415

    if picture:
        save_picture(shown.figure(found), picture)
    if as_json:
        print(json.dumps(found.record(), indent=2))
        return
    console = Screen()
    for line in shown.sentences(found):
        console.print(line, highlight=False)
    console.print(screen.table_renderable(shown.table(found)))
    console.print(shown.origin(found), highlight=False, style="dim")
    if written:
        show_paths(console, *written)


def _rewrite_report(run: Run, found: "Attribution") -> Path:
    """Store the delays in the run, rewrite its report, and return the report's path. Raises RoundaboutError."""
    from analysis.reports.delays import store_delays  # noqa: PLC0415 - takes long to import
    from analysis.reports.report import write_report  # noqa: PLC0415

    store_delays(run, found)
    return write_report(run)
