# SPDX-License-Identifier: Apache-2.0
"""`roundabout watch`: show the live progress of a run that another process executes."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.live import Live

from roundabout.cli.options import Runs, check_output
from roundabout.cli.runs.status import print_status, status_of
from roundabout.core.errors import RoundaboutError
from roundabout.runner import progress_file
from roundabout.runner.machine.state import STATE
from roundabout.runner.progress_events import Progress
from roundabout.store import Run
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.lines import print_line
from roundabout.terminal.run_progress import PlainView, ProgressScreen, can_redraw
from roundabout.terminal.screen import Screen

REPORT = "report.html"
NICENESS = 10  # low priority, because the watched run is often measured on this machine

Show = Callable[[Progress], None]


class NotGoingOnError(RoundaboutError):
    """Error for a missing running run."""


def command(
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="A run's folder or id, an experiment, or `last`. Default: the running one."
        ),
    ] = None,
    runs: Runs = Path("runs"),
    page: Annotated[
        Path | None, typer.Option(help="Also write a page for a browser to this file, anew every five seconds.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on each line, for programs.")] = False,
) -> None:
    """Show the live progress of a run until it ends. Watching does not affect the run.

    The page shows the trial under way and, like that of `roundabout explore`, the trials that are done. The exit status
    is 0 if the run is complete.
    """
    if page:
        check_output("--page", page)
    undo_when_ended()  # the screen that it takes
    os.nice(NICENESS)
    path = Run.open(which, runs).path if which else find_running(runs)
    console = Screen()
    with _open_display(console, as_json=as_json) as show:
        last = _follow_with_page(path, show, page) if page else follow_run(path, show)
    status, report = status_of(Run.open(path), STATE), path / REPORT
    if as_json:
        _print_line(console, {**asdict(last), **status, "report": str(report) if report.exists() else None})
    else:
        if can_redraw(console):
            console.print(ProgressScreen(last))
        print_status(status)
        if report.exists():
            print_line(f"  report: {report}")
    if status["state"] != "complete":
        raise typer.Exit(1)


def follow_run(path: Path, show: Show) -> Progress:
    """Show the run in the folder `path` every PERIOD_S until it ends. Return its last progress."""
    progress = Progress(path=str(path))
    # Until the testbed is up, the run has no progress.
    while progress_file.read(path) is None and progress_file.run_on_machine() == path:
        show(progress)
        time.sleep(progress_file.PERIOD_S)
    while reported := progress_file.read(path):
        progress = reported.progress
        if not reported.is_live:
            break
        show(progress)
        time.sleep(progress_file.PERIOD_S)
    return progress


def _follow_with_page(path: Path, show: Show, page: Path) -> Progress:
    """Follow the run like `follow_run`, and write the page on it meanwhile."""
    from analysis.explorer.live_page import LivePage  # noqa: PLC0415 - takes long to import

    live = LivePage(page)

    def show_both(progress: Progress) -> None:
        show(progress)
        live.show(asdict(progress))

    last = follow_run(path, show_both)
    live.end(Run.open(path))
    return last


def find_running(runs: Path) -> Path:
    """Return the folder of the latest running run below `runs`, or of this machine's. Raises NotGoingOnError."""
    if found := [*filter(None, [progress_file.run_on_machine()]), *progress_file.running_runs(runs)]:
        return found[-1]
    try:
        last = Run.open("last", runs)
    except RoundaboutError:
        raise NotGoingOnError(f"no run goes on, and there is none in {runs}") from None
    status = status_of(last, STATE)
    raise NotGoingOnError(f"no run goes on; the last in {runs} is {last.experiment} {last.id}: {status['state']}")


@contextmanager
def _open_display(console: Screen, *, as_json: bool) -> Iterator[Show]:
    """Open a display of progress: JSON, lines, or a screen of its own that is redrawn at its present size."""
    if as_json:
        yield _Lines(console).show
    elif not can_redraw(console):
        yield PlainView(console).show
    else:
        with Live(console=console, auto_refresh=False, screen=True) as drawn:
            yield lambda progress: drawn.update(ProgressScreen(progress, titled=True), refresh=True)


class _Lines:
    """A display that prints a JSON object a line at every change."""

    def __init__(self, console: Screen) -> None:
        self._console = console
        self._said: dict[str, Any] = {}

    def show(self, progress: Progress) -> None:
        if (reported := {**asdict(progress), "state": "running"}) != self._said:
            _print_line(self._console, reported)
            self._said = reported


def _print_line(console: Screen, reported: dict[str, Any]) -> None:
    console.out(json.dumps(reported), highlight=False)
