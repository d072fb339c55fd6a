# SPDX-License-Identifier: Apache-2.0
"""`roundabout verify`: compare a rack with its inventory, and check the effect of settings by traffic."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from roundabout.core.errors import UsageError
from roundabout.runner.hosts import playbooks
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.playbook import (
    Drift,
    Inventory,
    Json,
    find_drift,
    name_hosts,
    plain_table,
    reasons_not_compared,
    run,
)
from roundabout.terminal.screen import Screen

if TYPE_CHECKING:
    from roundabout.testbeds.rack.provider import RackProvider
    from roundabout.testbeds.rack.rdma_class_check import Row

Traffic = Annotated[
    bool,
    typer.Option(
        "--traffic",
        help="Also check classes and DCQCN by RDMA traffic. This loads all links, and changes DCQCN's T of each server "
        "for about a minute.",
    ),
]


def command(inventory: Inventory, traffic: Traffic = False, as_json: Json = False) -> None:
    """Compare the hosts with their inventory and print the drift. Change nothing. Exit with 1 if there is drift."""
    rack = _rack_provider(inventory) if traffic else None
    _print_rail_gaps(Path(inventory))
    try:
        reports = run("verify", inventory).reports
    except playbooks.ProvisionError as error:
        if not any(find_drift(error.reports)):
            raise  # a host was unreachable, which is not drift
        reports = error.reports
        for host, reason in error.failures.items():
            if host not in reports:
                typer.echo(f"not compared: {host}: {reason}", err=True)
    found = list(find_drift(reports))
    rows = list(rack.check_traffic(f"verify-{os.getpid()}")) if rack else []
    if as_json:
        names = ("host", "what", "expected", "found")
        reported = {"drift": [dict(zip(names, drift, strict=True)) for drift in found]}
        ridden = [{**row._asdict(), "wrong": [each._asdict() for each in row.wrong]} for row in rows]
        typer.echo(json.dumps(reported | ({"traffic": ridden} if rack else {})))
    else:
        not_compared = reasons_not_compared(reports)
        if found:
            show_drift(found, [host for host in reports.keys() - not_compared if "switch" not in reports[host]])
        else:
            typer.echo(f"{len(reports) - len(not_compared)} hosts are as they should be")
        for host, reason in not_compared.items():
            typer.echo(f"switch {host}: not compared; {reason}")
        if rows:
            show_traffic(rows)
    raise typer.Exit(int(bool(found) or any(row.wrong for row in rows)))


def _rack_provider(inventory: str) -> "RackProvider":
    """Return the rack for the RDMA check. Raises UsageError, SpecError."""
    from roundabout.testbeds.rack.provider import RackProvider  # noqa: PLC0415 - half a second that others need not pay

    if not Path(inventory).is_file():
        raise UsageError(f"--traffic: found {inventory}, expected an inventory of a rack", "a lab has no RDMA")
    undo_when_ended()
    return RackProvider(Path(inventory))


def _print_rail_gaps(inventory: Path) -> None:
    """Name servers with fewer NICs than others. This is no drift, because a rack may be so."""
    if inventory.is_file():  # and not a lab
        from roundabout.testbeds.rack.inventory import read_inventory  # noqa: PLC0415 - as in `_rack_provider`
        from roundabout.testbeds.rack.rail_check import MEND, find_rail_gaps  # noqa: PLC0415

        for host, found in find_rail_gaps(read_inventory(inventory)):
            typer.echo(f"{host} nics: {found}; {MEND}", err=True)


def show_traffic(rows: "list[Row]") -> None:
    """Print a table with one row for each pair of servers, and one line for each of its differences."""
    ridden = plain_table("from", "to", "Gbit/s", "found")
    for row in rows:
        wrong = "\n".join(f"{each.what}: expected {each.expected}, found {each.found}" for each in row.wrong)
        rate = "" if row.gbps is None else f"{row.gbps:.1f}"
        found = f"{row.what}: not measured: {row.unmeasured}" if row.unmeasured else row.found
        ridden.add_row(row.source, row.to, rate, Text(wrong or found))
    Screen().print(ridden)


def show_drift(found: list[Drift], requested: Collection[str]) -> None:
    """Print a table of the drift: hosts, setting, expected value and found value. `requested` has all servers."""
    hosts_of: dict[tuple[str, ...], list[str]] = {}
    for host, *drift in found:
        hosts_of.setdefault(tuple(drift), []).append(host)
    table = plain_table("host", "what", "expected", "found")
    for row, hosts in hosts_of.items():
        table.add_row(*map(Text, (name_hosts(hosts, requested), *row)))
    Screen().print(table)
