# SPDX-License-Identifier: Apache-2.0
"""`roundabout publish`: write a run's summary, figures and facts below `results/`."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.reports.publishing.publication import RESULTS
from analysis.reports.publishing.publisher import publish_run
from roundabout.cli.options import Results, Runs, WhichRun
from roundabout.store import Run
from roundabout.terminal.screen import Screen


def command(
    which: WhichRun = "last",
    runs: Runs = Path("runs"),
    results: Results = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the publication of a newer run.")] = False,
) -> None:
    """Publish a run for the scoreboard: its summary, small figures, and where they come from.

    Altered, incomplete and invalid runs are refused, and runs of code that is not in this checkout's history.
    """
    published = publish_run(Run.open(which, runs), results or RESULTS, force=force)
    size = sum(path.stat().st_size for path in published.folder.iterdir())
    console = Screen()
    console.print(
        f"{published.folder}: {len(published.facts.figures)} figures, {size / 1000:.0f} kB",
        soft_wrap=True,
        highlight=False,
    )
    console.print(f"repeat: {published.facts.command}", soft_wrap=True, highlight=False)
