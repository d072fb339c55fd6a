# SPDX-License-Identifier: Apache-2.0
"""`roundabout explore`: write a page on a run, or on all runs of a folder, that a browser opens from disk."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.models.progress import show_part
from roundabout.cli.options import Runs, check_output
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.runner.machine.undo_journal import raise_together
from roundabout.store import Run
from roundabout.terminal.screen import Screen, show_page


def command(
    where: Annotated[
        str | None,
        typer.Argument(
            metavar="[FOLDER|RUN]",
            help="A folder of runs or of published runs, or a run: its folder or id, an experiment, or `last`. "
            "Default: the folder of all runs.",
        ),
    ] = None,
    runs: Runs = Path("runs"),
    trial: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Show this trial of the run, in all detail. May be repeated."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="File of the page. Default: explorer.html in the folder, or beside all runs for published ones."
        ),
    ] = None,
) -> None:
    """Write a page on a run, or on all runs of a folder. A browser opens it from disk, without server or network.

    The page of a folder lists its runs, filtered by experiment, testbed and verdict, and draws their figures on one
    axis. That of a run shows jobs' phases, links, queues, marks and CNPs over time, the topology with the load of each
    cable, and single iterations. The page of a folder of runs comes with a page on each of them.
    """
    from analysis.explorer import pages  # noqa: PLC0415 - takes long to import
    from analysis.explorer.run_list import PAGE, find_runs  # noqa: PLC0415
    from analysis.reports.publishing.publication import publications  # noqa: PLC0415

    if page:
        check_output("--page", page)
    folder = Path(where) if where else runs
    if not _is_folder_of_runs(folder):
        run = Run.open(where or "last", runs)
        show_page(Screen(), pages.explore_run(run, page or pages.page_of_run(run), trial or ()))
        return
    if trial:
        raise UsageError(f"--trial: found a folder of runs, {folder}, expected a run", "name the trial's run")
    unread: list[RoundaboutError] = []
    found = find_runs(folder)
    with show_part(f"reading {len(found)} runs") as progress:
        for place, run in enumerate(found, start=1):
            try:
                pages.explore_run(run, pages.page_of_run(run))
            except pages.NoIterationsError:
                pass  # the folder's page lists it all the same
            except RoundaboutError as error:
                unread.append(error)
            progress(place / len(found))
    default = (runs if publications(folder) else folder) / PAGE  # publications are part of the project
    show_page(Screen(), pages.explore_folder(folder, page or default, unread.append))
    raise_together(unread)


def _is_folder_of_runs(folder: Path) -> bool:
    """Return True for a folder that is not itself a run."""
    return folder.is_dir() and not (folder / "manifest.json").exists()
