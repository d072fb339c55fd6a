# SPDX-License-Identifier: Apache-2.0
"""`roundabout status`: show the progress of a run."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from roundabout.cli.options import Json, Runs, WhichRun
from roundabout.runner import progress_file
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.state import STATE
from roundabout.store import Run
from roundabout.store.trial_states import DISTURBANCE, State, state_of_record
from roundabout.terminal.lines import print_line, print_warning


def command(
    which: WhichRun = "last",
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Show the progress of a run and the reasons of disturbed and invalid trials."""
    status = status_of(Run.open(which, runs), STATE)
    if as_json:
        print(json.dumps(status, indent=2))
    else:
        print_status(status)


def print_status(status: Mapping[str, Any]) -> None:
    """Print a status that `status_of` returned."""
    print_line(f"{status['experiment']}  {status['path']}")
    print_line(f"{status['state']}: {status['committed']} of {status['planned']} trials committed")
    for state in ("disturbed", "invalid"):
        for trial in status[state]:
            print_line(f"  {state}: {trial['key']}: {trial['reason']}")
    for name in status["interrupted"]:
        print_line(f"  cut short: {name}")
    for warning in status["warnings"]:
        print_warning(warning)
    if status["state"] == "interrupted":
        print_line(f"  finish it: roundabout resume {status['run']}")


def status_of(run: Run, state: Path) -> dict[str, Any]:
    """Return a run's state ("running", "complete" or "interrupted") and its trials. `state` is the machine's folder."""
    keys = [trial["key"] for trial in run.manifest["plan"]]
    committed = run.committed() & set(keys)
    found = state_of(run, committed, state)
    return {
        "experiment": run.experiment,
        "run": run.id,
        "path": str(run.path),
        "state": found,
        "planned": len(keys),
        "committed": len(committed),
        **{state: _reasons(run, state) for state in ("disturbed", "invalid")},
        "interrupted": [] if found == "running" else run.interrupted_attempts(),
        "warnings": [fault for fault in [run.experiment_fault()] if fault],
    }


def _reasons(run: Run, state: State) -> list[dict[str, Any]]:
    """Return the keys and reasons of the trials in this state, with the estimated effect on disturbed trials."""
    return [
        {"key": record["trial"], "reason": record["reason"]}
        | ({DISTURBANCE: record.get(DISTURBANCE)} if state == "disturbed" else {})
        for record in run.trials()
        if state_of_record(record) == state
    ]


def state_of(run: Run, done: Collection[str], state: Path) -> str:
    """Return "running" if a process executes the run, else "complete" if all planned trials are in `done`.

    Otherwise return "interrupted".
    """
    # A resumed run that still raises its testbed holds the machine's lease, and has no progress file yet.
    if progress_file.is_running(run.path) or machine_lease.holder("machine", state).endswith(run.id):
        return "running"
    return "complete" if all(trial["key"] in done for trial in run.manifest["plan"]) else "interrupted"
