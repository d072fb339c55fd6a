# SPDX-License-Identifier: Apache-2.0
"""`roundabout runs`: list the stored runs."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from roundabout.cli.options import Json, Runs
from roundabout.cli.runs.status import state_of
from roundabout.runner.machine.state import STATE
from roundabout.store import Run, StoreError
from roundabout.store.trial_states import STATES
from roundabout.terminal.lines import print_line
from roundabout.terminal.screen import Screen


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...",
            help="Show runs that match all words: a part of the experiment's name or id, the testbed, or the state.",
        ),
    ] = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """List runs: experiment, when, testbed, state, trials (valid, disturbed, invalid, missing), and size."""
    every = [describe_run(run, STATE) for run in sorted(Run.all(runs), key=lambda run: run.id)]
    found = [each for each in every if all(_matches(each, word) for word in words or ())]
    if as_json:
        print(json.dumps(found, indent=2))
    elif found:
        Screen().print(_table(found))
    else:
        of_words = f"{len(every)} runs in {runs}, none with all of: {' '.join(words or ())}"
        print_line(of_words if every else f"no run in {runs}")


def describe_run(run: Run, state: Path) -> dict[str, Any]:
    """Return a short description of a run. If it is unreadable, `fault` is the reason and other values are None."""
    known: dict[str, Any] = dict.fromkeys(("testbed", "state", "valid", "disturbed", "invalid", "missing", "fault"))
    try:
        listed, planned = run.listed_trials(), {trial["key"] for trial in run.manifest["plan"]}
        known |= {
            "testbed": run.manifest["testbed"].get("kind"),
            "state": state_of(run, run.committed(), state),
            **{str(each): list(listed.values()).count(each) for each in STATES},
            "missing": len(planned - listed.keys()),
        }
    except StoreError as error:
        known["fault"] = error.message
    return {
        "run": run.id,
        "experiment": run.experiment,
        "begun_utc": run.start_time.isoformat(),
        **known,
        "size_bytes": run.size_bytes,
        "path": str(run.path),
    }


def format_megabytes(size_bytes: int) -> str:
    """Return a size in MB as text for tables of runs."""
    return f"{size_bytes / 1e6:.1f}"


def _matches(run: dict[str, Any], word: str) -> bool:
    return word in run["experiment"] or word in run["run"] or word in (run["testbed"], run["state"])


def _table(found: list[dict[str, Any]]) -> Table:
    """Return a table for 80 columns. An id begins with the UTC time at which its run began."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for heading in ("experiment", "testbed", "state", "trials"):
        table.add_column(heading, overflow="fold")
    table.add_column("MB", justify="right", no_wrap=True)
    for run in found:
        state = Text(run["fault"], style="red") if run["fault"] else run["state"]
        trials = (f"{run[name]} {name}" for name in (*STATES, "missing") if run[name])
        size = format_megabytes(run["size_bytes"])
        table.add_row(run["run"], run["experiment"], run["testbed"] or "", state, ", ".join(trials), size)
    return table
