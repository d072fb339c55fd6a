# SPDX-License-Identifier: Apache-2.0
"""`roundabout clean`: undoes what dead runs left on this machine, and on racks."""

import typer

from roundabout.errors import RoundaboutError
from roundabout.runner.machine import journal, lease, temporary
from roundabout.runner.machine.state import STATE
from roundabout.testbeds import facility


def command() -> None:
    """Undo everything that killed runs left: labs, transports, leases. Live runs and other labs are left alone."""
    failures = []
    undone = []
    hints: dict[str, None] = {}
    for run_id, owed in journal.dead(STATE).items():
        try:
            journal.settle(run_id, STATE, undo)
            undone.append(f"run {run_id}: {', '.join(sorted({entry['kind'] for entry in owed})) or 'its journal'}")
        except RoundaboutError as error:
            failures.append(f"run {run_id}: {error.message}")
            hints[error.hint or "mend that, then clean again"] = None
    undone += [f"lease on the {name}" for name in lease.remove_stale(STATE)]
    for line in undone:
        typer.echo(f"undone: {line}")
    if failures:
        raise RoundaboutError("could not undo everything: " + "; ".join(failures), "\n".join(hints))
    if not undone:
        typer.echo("nothing to undo")


def undo(entry: journal.Entry) -> None:
    """Undo what one entry of a journal says, by whoever made it."""
    if entry["kind"] == temporary.KIND:
        temporary.remove(entry)
    else:
        facility(entry["where"]).undo(entry)
