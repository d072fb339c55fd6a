# SPDX-License-Identifier: Apache-2.0
"""`roundabout rollback`: restores the settings that an owner found."""

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from roundabout.runner.hosts import playbooks
from roundabout.terminal.playbook import Inventory, Json, plain_table, run
from roundabout.terminal.screen import Screen


def command(
    inventory: Inventory,
    owner: Annotated[str, typer.Option(help="Whose settings: provisioning's own, or a run's.")] = "provision",
    as_json: Json = False,
) -> None:
    """Replay the settings journal of each host, also after a crash or a reboot, and read the settings back."""
    try:
        result = run("rollback", inventory, {"settings_owner": owner})
    except playbooks.ProvisionError as error:
        if not as_json:
            show_exceptions(error.reports)
        raise
    if as_json:
        typer.echo(json.dumps({"reports": result.reports}))
        return
    show_exceptions(result.reports)
    count = sum(bool(report.get("changed")) for report in result.reports.values())
    typer.echo(f"{count} of {len(result.reports)} hosts had settings of {owner} to bring back; all were read back")


def show_exceptions(reports: playbooks.Reports) -> None:
    """Print the settings that were not simply restored, with the reasons."""
    told = plain_table("host", "setting", "what became of it")
    for host, report in reports.items():
        for each in report.get("overridden", []):
            told.add_row(host, Text(each["setting"]), Text(f"restored, though somebody had set {each['found']}"))
        for each in report.get("skipped", []):
            told.add_row(host, Text(each["setting"]), Text(f"nothing to restore: {each['reason']}"))
        for each in report.get("not_restored", []):
            told.add_row(host, Text(each["setting"]), Text(_failure(each)))
    if told.row_count:
        Screen().print(told)


def _failure(each: dict[str, Any]) -> str:
    return f"NOT restored to {each['found']}: {each['reason']}"
