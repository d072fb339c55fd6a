# SPDX-License-Identifier: Apache-2.0
"""`roundabout scoreboard`: show the state of reproduction of every printed result."""

import json
from pathlib import Path
from typing import Annotated

import typer

from analysis import papers
from analysis.reports.publishing.publication import RESULTS
from analysis.reports.scoreboard import read_scoreboard, scoreboard_record
from analysis.reports.scoreboard_page import write_page
from analysis.reports.scoreboard_table import ScoreboardTable, quantity_table
from roundabout.cli.options import Json, Results, Runs, check_output
from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.undo_journal import raise_together
from roundabout.terminal.screen import Screen


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    runs: Runs = Path("runs"),
    results: Results = None,
    group: Annotated[papers.Group, typer.Option(help="Results of the three papers, or of others.")] = "papers",
    page: Annotated[Path | None, typer.Option(help="File of the page. Default: runs/scoreboard.html.")] = None,
    list_quantities: Annotated[
        bool, typer.Option("--quantities", help="List the quantities for `expect:` instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show every printed result of a group beside each testbed's newest figures, and write a page.

    Published figures stand where no newer run is here. Unreadable runs are left out and listed at the end, and the exit
    status is 1.
    """
    if page:
        check_output("--page", page)
    console = Screen()
    if list_quantities:
        console.print(quantity_table())
        return
    unread: list[RoundaboutError] = []
    lines = read_scoreboard(runs, unread.append, groups=(group,), results=results or RESULTS)
    if as_json:
        print(json.dumps(scoreboard_record(lines), indent=2))
    else:
        console.print(ScoreboardTable(lines))
        console.print(f"page  {write_page(lines, page or runs / 'scoreboard.html')}", soft_wrap=True, highlight=False)
    raise_together(unread)
