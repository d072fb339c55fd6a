# SPDX-License-Identifier: Apache-2.0
"""`roundabout verify`: reads back what `provision` did."""

import json
from collections.abc import Iterator

import typer
from rich.text import Text

from roundabout.cli.playbook import Inventory, Json, run, table
from roundabout.cli.screen import Screen
from roundabout.runner.hosts import playbooks

Drift = tuple[str, str, str, str]  # host, what, expected, found


def command(inventory: Inventory, as_json: Json = False) -> None:
    """Compare an inventory's hosts with what was asked, print what drifted, change nothing; exit 1 on drift."""
    try:
        reports = run("verify", inventory).reports
    except playbooks.ProvisionError as error:
        if not any(drifts(error.reports)):
            raise  # a host could not be asked: that is no drift
        reports = error.reports
        unasked = error.hint if "unreachable=1" in (error.hint or "") else None
        if unasked:
            typer.echo(f"not all hosts answered:\n{unasked}", err=True)
    found = list(drifts(reports))
    if as_json:
        names = ("host", "what", "expected", "found")
        typer.echo(json.dumps({"drift": [dict(zip(names, drift, strict=True)) for drift in found]}))
    elif found:
        show(found)
    else:
        typer.echo(f"{len(reports)} hosts are as they should be")
    raise typer.Exit(int(bool(found)))


def drifts(reports: playbooks.Reports) -> Iterator[Drift]:
    """Everything that is not what was asked."""
    for host, report in reports.items():
        for program in report.get("programs", []):
            yield host, f"program {program}", "as built here", "missing, or another"
        for each in report.get("settings", []):
            yield host, each["setting"], str(each["expected"]), str(each["found"])
        if report.get("switch"):
            yield host, "configuration", "as rendered", "\n".join(report["switch"])


def show(found: list[Drift]) -> None:
    """The drift as a table."""
    drift = table("host", "what", "expected", "found")
    for row in found:
        drift.add_row(*map(Text, row))
    Screen().print(drift)
