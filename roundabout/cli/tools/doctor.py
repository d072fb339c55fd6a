# SPDX-License-Identifier: Apache-2.0
"""`roundabout doctor`: check the requirements of a testbed, and show remedies for missing ones."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Testbed
from roundabout.core.errors import UsageError
from roundabout.runner.testbed import Check
from roundabout.store.files import write_json
from roundabout.terminal.execution import requested_provider, undo_when_ended
from roundabout.terminal.playbook import name_hosts


def command(
    inventory: Annotated[
        Path | None, typer.Argument(metavar="[INVENTORY]", help="Inventory of a rack to check instead of this machine.")
    ] = None,
    testbed: Testbed = None,
    every: Annotated[bool, typer.Option("--all", help="Print the requirements that are met, too, one a line.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write raw answers of the rack's machines to this file instead, for tests."),
    ] = None,
) -> None:
    """Check the requirements of this machine or a rack. Change nothing. Exit with 1 if a requirement is missing."""
    undo_when_ended()
    if record:
        _record(inventory, record)
        return
    checks = list(requested_provider(testbed, inventory).checks())
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks]))
    else:
        shown = fold_hosts(checks) if inventory else checks
        for check in shown:
            if every or not check.good:
                typer.echo(format_check(check))
        met = sum(bool(check.good) for check in shown)
        if met and not every:
            typer.echo(f"{'ok':8} {met} of {len(shown)} requirements; --all lists them")
    raise typer.Exit(int(any(check.needed and check.good is False for check in checks)))


def _record(inventory: Path | None, file: Path) -> None:
    """Write the answers of a rack's machines. Raises UsageError, SpecError, RoundaboutError."""
    from roundabout.testbeds.rack.provider import RackProvider  # noqa: PLC0415 - half a second that others need not pay

    if inventory is None:
        raise UsageError("--record: found no inventory, expected one", "what is recorded are a rack's machines")
    write_json(file, RackProvider(inventory).record_answers())
    typer.echo(f"{file}: identifying numbers have other names; read it before you hand it on (docs/how-to/rack.md)")


def fold_hosts(checks: Sequence[Check]) -> list[Check]:
    """Return one check for all hosts of a rack that have the same result, with the hosts behind what was found.

    Hosts that meet a requirement have the same result, whatever was found on them.
    """
    alike: dict[Check, dict[str, str]] = {}  # what was found, by host
    requested = dict.fromkeys(check.name.partition(" ")[0] for check in checks)
    for check in checks:
        host, _, name = check.name.partition(" ")
        alike.setdefault(replace(check, name=name, found="" if check.good else check.found), {})[host] = check.found
    names = list(dict.fromkeys(check.name for check in alike))
    return [
        replace(check, found=f"{', '.join(dict.fromkeys(found.values()))} ({name_hosts(found, requested)})")
        for check, found in sorted(alike.items(), key=lambda each: names.index(each[0].name))
    ]


def format_check(check: Check) -> str:
    """Return a check's result as one line of text."""
    mark = {True: "ok", None: "?", False: "MISSING" if check.needed else "-"}[check.good]
    line = f"{mark:8} {check.name:28} {check.found}"
    return line if check.good or not check.mend else f"{line}; to get it: {check.mend}"
