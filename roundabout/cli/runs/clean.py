# SPDX-License-Identifier: Apache-2.0
"""`roundabout clean`: undo what crashed runs left on this machine and on racks, and what killed tests left here."""

import typer

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine import machine_lease, undo_journal
from roundabout.runner.machine.machine_lease import BusyError
from roundabout.runner.machine.process_leftovers import find_leftovers
from roundabout.runner.machine.state import STATE
from roundabout.runner.machine.undo_journal import JOURNALS, Entry
from roundabout.store import scratch
from roundabout.testbeds import undo

LEASE_TIMEOUT_S = 30.0  # wait for another process that is already cleaning up


def command() -> None:
    """Remove the leftovers of crashed runs, tests and benchmarks: labs, transports, settings, files and crash logs.

    Live runs and labs made by `roundabout lab` are not touched.
    """
    reported = []

    def report(line: str) -> None:
        reported.append(line)
        typer.echo(line)

    for path in scratch.remove_dead():
        report(f"removed {path}")

    def remove(entry: Entry) -> None:
        report(f"removing {entry['kind']} {entry['name']}, left by a process that ended")
        undo(entry)

    failed: list[RoundaboutError] = []
    try:
        wait_s = LEASE_TIMEOUT_S if _has_leftovers() else 0
        with machine_lease.hold("machine", "roundabout clean", STATE, wait_s=wait_s):
            failed += undo_journal.apply_to_each(remove, find_leftovers(STATE))
            failed += undo_journal.replay(JOURNALS, undo, report)
    except BusyError as error:
        if _has_leftovers():
            failed.append(error)
    for path in undo_journal.journals_of_other_machines(JOURNALS):
        report(f"kept {path}: once that run has ended, `roundabout clean` on {path.parent.name} undoes what it left")
    undo_journal.raise_together(failed)
    if not reported:
        typer.echo("nothing to undo")


def _has_leftovers() -> bool:
    """Return True if a dead run left entries in its journal, or a dead test or benchmark left anything."""
    holder = machine_lease.holder("machine", STATE)
    dead = (run_id for run_id in undo_journal.runs_with_journal(JOURNALS) if not holder.endswith(run_id))
    return any(find_leftovers(STATE)) or any(dead)
