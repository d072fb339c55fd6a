# SPDX-License-Identifier: Apache-2.0
"""`roundabout rollback`: restore the original settings of a rack's hosts."""

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from roundabout.runner.hosts import playbooks
from roundabout.terminal.playbook import Inventory, Json, plain_table, run
from roundabout.terminal.screen import Screen


def command(
    inventory: Inventory,
    owner: Annotated[str, typer.Option(help="Owner of the settings: `provision`, or a run.")] = "provision",
    as_json: Json = False,
) -> None:
    """Restore settings from each host's settings journal and read them back. Works after a crash or reboot."""
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
    switches = ", and no switch failed" if len(result.changed) > len(result.reports) else ""
    typer.echo(
        f"{count} of {len(result.reports)} hosts had settings of {owner} to bring back; all were read back{switches}"
    )


def show_exceptions(reports: playbooks.Reports) -> None:
    """Print the settings that were overridden, skipped, or failed to be restored, with the reasons."""
    reported = plain_table("host", "setting", "what became of it")
    for host, report in reports.items():
        for each in report.get("overridden", []):
            reported.add_row(host, Text(each["setting"]), Text(f"restored; it had become {each['found']}"))
        for each in report.get("skipped", []):
            reported.add_row(host, Text(each["setting"]), Text(f"nothing to restore: {each['reason']}"))
        for each in report.get("not_restored", []):
            reported.add_row(host, Text(each["setting"]), Text(_failure(each)))
    if reported.row_count:
        Screen().print(reported)


def _failure(each: dict[str, Any]) -> str:
    return f"NOT restored to {each['found']}: {each['reason']}"
