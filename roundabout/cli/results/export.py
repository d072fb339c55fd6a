# SPDX-License-Identifier: Apache-2.0
"""`roundabout export`: write a run's tables as CSV, or a trial as a trace, for other programs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from analysis.reports.export import export_tables, export_trace
from roundabout.cli.options import Runs, WhichRun, check_output
from roundabout.core.errors import UsageError
from roundabout.store import Run
from roundabout.store.files import write_text
from roundabout.terminal.lines import print_line


def command(
    which: WhichRun = "last",
    runs: Runs = Path("runs"),
    csv: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the tables, with a dictionary of columns.")
    ] = None,
    trial: Annotated[
        str | None, typer.Option("--trace", metavar="TRIAL", help="Trial to write as a trace: its key, or `first`.")
    ] = None,
    to: Annotated[Path, typer.Option(help="File of the trace, for ui.perfetto.dev or chrome://tracing.")] = Path(
        "trace.json"
    ),
) -> None:
    """Write a run's tables as CSV with a dictionary of their columns, or a trial as a trace that Perfetto opens."""
    if (csv is None) == (trial is None):
        raise UsageError("found " + ("both" if csv else "neither") + ", expected --csv FOLDER or --trace TRIAL")
    run = Run.open(which, runs)
    print_line(
        f"run {run.path.name} of {run.experiment} on {run.manifest['testbed'].get('kind', 'an unknown testbed')}"
    )
    if csv is not None:
        _check_folder(csv)
        for path, rows in export_tables(run, csv):
            print_line(f"{path}  {rows} rows")
    if trial is not None:
        check_output("--to", to, is_new=True)
        write_text(to, export_trace(run, trial))
        print_line(f"{to}  open it on https://ui.perfetto.dev")


def _check_folder(csv: Path) -> None:
    """Raise UsageError unless the folder is empty or new, because tables of two runs could not be distinguished."""
    if os.path.lexists(csv) and not (csv.is_dir() and not any(csv.iterdir())):
        raise UsageError(
            f"--csv: '{csv}' exists, expected an empty folder or a new name", "nothing is overwritten: move it away"
        )
