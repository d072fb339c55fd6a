# SPDX-License-Identifier: Apache-2.0
"""Runs of the Ansible playbooks of `provision`, `verify` and `rollback`, and the drift in their reports."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from roundabout.runner.hosts import playbooks
from roundabout.testbeds import inventories

Drift = tuple[str, str, str, str]  # host, setting, expected value, found value
Inventory = Annotated[str, typer.Argument(metavar="INVENTORY", help="An inventory of a rack, or lab:NAME for a lab.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def run(
    playbook: playbooks.Playbook,
    inventory: str,
    extra: Mapping[str, Any] | None = None,
    show: Callable[[str], None] | None = None,
    *,
    check: bool = False,
) -> playbooks.Result:
    """Run `playbook` on the hosts that `inventory` names."""
    with inventories(inventory) as paths:
        return playbooks.run_playbook(playbook, paths, extra, show, check=check)


def plain_table(*headings: str) -> Table:
    """Return an empty table with these headings. Its cells never interpret host values as markup."""
    return Table(*headings, box=None, header_style="bold", pad_edge=False)


def name_hosts(hosts: Collection[str], requested: Collection[str]) -> str:
    """Return the names of `hosts`, or their number if they are all of several hosts."""
    return f"all {len(hosts)} hosts" if len(hosts) > 1 and set(hosts) == set(requested) else ", ".join(hosts)


def reasons_not_compared(reports: playbooks.Reports) -> dict[str, str]:
    """Return the reason of each switch whose configuration was not compared."""
    return {host: report["not_compared"] for host, report in reports.items() if "not_compared" in report}


def find_drift(reports: playbooks.Reports) -> Iterator[Drift]:
    """Yield each setting, program and switch configuration whose found value differs from the requested value."""
    for host, report in reports.items():
        for program in report.get("programs", []):
            yield host, f"program {program}", "as built here", "missing, or another"
        for each in report.get("settings", []):
            yield host, each["setting"], str(each["expected"]), str(each["found"])
        if report.get("switch"):
            yield host, "configuration", "as rendered", "\n".join(report["switch"])
