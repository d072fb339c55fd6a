# SPDX-License-Identifier: Apache-2.0
"""`roundabout scoreboard`: show the state of reproduction of every result of the papers."""

import json
from pathlib import Path
from typing import Annotated

import typer

from analysis.reports.scoreboard import quantity_table, read_scoreboard, scoreboard_record, table
from analysis.reports.scoreboard_page import write_page
from roundabout.cli.options import Json, Runs, check_output
from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.journal import raise_together
from roundabout.terminal.screen import Screen


def command(
    runs: Runs = Path("runs"),
    page: Annotated[Path | None, typer.Option(help="File of the page. Default: runs/scoreboard.html.")] = None,
    list_quantities: Annotated[
        bool, typer.Option("--quantities", help="List the quantities for `expect:` instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show every result of the papers beside the newest valid run's figures, and write a page.

    Unreadable runs are left out and listed at the end, and the exit status is 1.
    """
    if page:
        check_output("--page", page)
    console = Screen()
    if list_quantities:
        console.print(quantity_table())
        return
    unread: list[RoundaboutError] = []
    lines = read_scoreboard(runs, unread.append)
    if as_json:
        print(json.dumps(scoreboard_record(lines), indent=2))
    else:
        console.print(table(lines))
        console.print(f"page  {write_page(lines, page or runs / 'scoreboard.html')}", soft_wrap=True, highlight=False)
    raise_together(unread)
