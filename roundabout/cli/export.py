# SPDX-License-Identifier: Apache-2.0
"""`roundabout export`: a run's tables as CSV, or a trial as a trace, for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.export import tables, trace
from roundabout.cli.options import Runs, WhichRun
from roundabout.errors import UsageError
from roundabout.store import Run
from roundabout.store.files import write_text


def command(
    which: WhichRun = "last",
    runs: Runs = Path("runs"),
    csv: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write its tables here, with their units.")] = None,
    trial: Annotated[
        str | None, typer.Option("--trace", metavar="TRIAL", help="The trial by key, or `first`: as a trace.")
    ] = None,
    to: Annotated[Path, typer.Option(help="The trace's file, for ui.perfetto.dev or chrome://tracing.")] = Path(
        "trace.json"
    ),
) -> None:
    """Write a run's tables as CSV with a dictionary of their columns, or a trial as a trace that Perfetto opens."""
    if (csv is None) == (trial is None):
        raise UsageError("found " + ("both" if csv else "neither") + ", expected --csv FOLDER or --trace TRIAL")
    run = Run.open(which, runs)
    if csv is not None:
        print("\n".join(f"{path}  {rows} rows" for path, rows in tables(run, csv)))
    if trial is not None:
        write_text(to, trace(run, trial))
        print(f"{to}  open it on https://ui.perfetto.dev")
