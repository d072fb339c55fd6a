# SPDX-License-Identifier: Apache-2.0
"""`roundabout clean`: undo the changes that crashed runs left on this machine and on racks."""

import typer

from roundabout.runner.machine import journal, lease
from roundabout.runner.machine.journal import JOURNALS
from roundabout.runner.machine.lease import BusyError
from roundabout.runner.machine.state import STATE
from roundabout.store import scratch
from roundabout.testbeds import undo

PATIENCE_S = 30.0  # wait for another process that is already cleaning up


def command() -> None:
    """Remove the leftovers of crashed runs: labs, transports, settings, temporary files and crash logs.

    Live runs and labs made by `roundabout lab` are not touched.
    """
    told = []

    def tell(line: str) -> None:
        told.append(line)
        typer.echo(line)

    for path in scratch.remove_dead():
        tell(f"removed {path}")
    try:
        with lease.hold("machine", "roundabout clean", STATE, wait_s=PATIENCE_S if _has_leftovers() else 0):
            journal.raise_together(journal.replay(JOURNALS, undo, tell))
    except BusyError:
        if _has_leftovers():
            raise
    if not told:
        typer.echo("nothing to undo")


def _has_leftovers() -> bool:
    """Return True if a dead run left entries in its journal."""
    holder = lease.holder("machine", STATE)
    return any(not holder.endswith(run_id) for run_id in journal.runs_with_journal(JOURNALS))
