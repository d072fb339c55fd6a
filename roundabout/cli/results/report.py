# SPDX-License-Identifier: Apache-2.0
"""`roundabout report`: rewrite the summary and page of a stored run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from analysis.reports.report import terminal_report, write_report
from analysis.reports.summary import summarize_run
from roundabout.cli.options import Runs, WhichRun
from roundabout.store import Run
from roundabout.terminal.lines import print_warning
from roundabout.terminal.screen import Screen, show_paths
from roundabout.terminal.validity import UnmeasuredError, check_measured


def command(
    which: WhichRun = "last",
    runs: Runs = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and write no page.")] = False,
) -> None:
    """Rewrite a run's trials.parquet, summary.json and report.html, and show the table of results."""
    run = Run.open(which, runs)
    for fault in filter(None, (run.experiment_fault(), run.repair_list())):
        print_warning(fault)
    summary = summarize_run(run)
    run.refresh_trials()
    run.write_summary(summary.record())
    if as_json:
        print(json.dumps(summary.record(), indent=2), flush=True)
    else:
        console = Screen()
        console.print(terminal_report(summary))
        show_paths(console, write_report(run), run.path)
    try:
        check_measured(run)
    except UnmeasuredError as error:  # the report is made all the same: it shows why
        print_warning(error.message)
