# SPDX-License-Identifier: Apache-2.0
"""`roundabout lab`: labs on this machine, by hand. Experiments create their own."""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roundabout.cli.options import Dilation, Json, Scale
from roundabout.core.errors import UsageError
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.process_leftovers import is_leftover
from roundabout.runner.machine.state import STATE
from roundabout.spec import load_topology
from roundabout.terminal.lines import print_notice
from roundabout.terminal.screen import Screen
from roundabout.testbeds.lab import Lab, LabError
from roundabout.testbeds.lab.checks.host_requirements import require_all

DEFAULT_TOPOLOGY = "dumbbell-2x2"
CLOCK_SHIFT = re.compile(r"([^=]+)=([+-]?\d{1,9}(?:\.\d{1,9})?)s")
LabName = Annotated[str | None, typer.Argument(metavar="[LAB]", help="Name of the lab. Default: the only lab.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def command() -> None:
    """Create, list, enter and remove labs on this machine."""


@app.command()
def up(
    topology: Annotated[str, typer.Argument(help="A topology of experiments/topologies.")] = DEFAULT_TOPOLOGY,
    name: Annotated[str | None, typer.Option(help="Name of the lab. Default: the topology's name.")] = None,
    scale: Scale = None,
    dilation: Dilation = None,
    clock_shift: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST=SECONDSs", help="Give a host its own clock, ahead by this time: s0=3600s. May be repeated."
        ),
    ] = None,
) -> None:
    """Build a lab and measure its links."""
    console = Screen()
    network, shifts = load_topology(topology), _parse_shifts(clock_shift or ())
    if name and is_leftover(name):
        raise UsageError(
            f"found lab name {name!r}, which stands for a lab of a process that has ended: `roundabout clean` would "
            "remove it; expected a name that does not end in -pid and a number"
        )
    require_all()
    with (
        machine_lease.hold(
            "machine", f"lab up {name or topology}", STATE, wait_s=machine_lease.QUEUE_S, report=print_notice
        ),
        console.status(Text(f"building {topology} and measuring its links")),
    ):
        lab = Lab.create(network, name, scale=scale, dilation=dilation, clock_shift_ns=shifts)
    console.print(_link_table(lab))
    counts = f"{len(lab.hosts)} hosts, {len(lab.topology.switches)} switches"
    console.print(Text.assemble(("up", "green"), f"  {lab.name}: {counts}, 1:{lab.scale:g}"))
    console.print(f"    roundabout lab ssh {next(iter(lab.hosts))}")
    console.print(f"    ssh -F {lab.ssh_config()} {next(iter(lab.hosts))}", soft_wrap=True)


@app.command()
def down(
    name: LabName = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all labs on this machine.")] = False,
) -> None:
    """Remove a lab, even if parts of it are missing."""
    if everything and name is not None:
        raise UsageError(f"found both a lab ({name}) and --all", "give one of them")
    names = Lab.names() if everything else (name or _only_lab(),)
    for each in names:
        Lab.remove(each)
        Screen().print(Text.assemble(("down", "green"), f"  {each}"))
    if not names:
        Screen().print("no labs on this machine")


@app.command()
def status(
    name: LabName = None,
    as_json: Json = False,
) -> None:
    """Show labs: hosts, links with their measured rates, and their state."""
    names = (name,) if name else Lab.names()
    reports = [_report(each) for each in names]
    if as_json:
        print(json.dumps({"labs": reports}, indent=1))
        return
    console = Screen()
    if not names:
        console.print(Text.assemble("no labs on this machine; ", ("roundabout lab up", "bold"), " makes one"))
    for report in reports:
        _show(console, report)


@app.command(context_settings={"ignore_unknown_options": True})
def ssh(
    host: Annotated[str, typer.Argument(help="A host of the lab.")],
    command: Annotated[list[str] | None, typer.Argument(help="Command to run, after --. Default: a shell.")] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="Name of the lab. Default: the only lab.")] = None,
) -> None:
    """Run a command or a shell on a host of a lab."""
    opened = Lab.open(lab or _only_lab())
    if host not in opened.hosts:
        raise UsageError(f"lab {opened.name!r} has no host {host!r}", f"its hosts: {', '.join(opened.hosts)}")
    program = shutil.which("ssh")
    if program is None:
        raise LabError("ssh was not found", "install openssh-client")
    os.execv(program, ["ssh", "-F", str(opened.ssh_config()), host, *(command or [])])  # noqa: S606 - we become it


def _parse_shifts(requested: Iterable[str]) -> dict[str, int]:
    shifts = {}
    for each in requested:
        found = CLOCK_SHIFT.fullmatch(each)
        if found is None:
            raise UsageError(
                f"--clock-shift: found {each!r}", "expected a host and seconds, as in s0=3600s or s1=-0.5s"
            )
        shifts[found[1]] = int(Decimal(found[2]) * 10**9)
    return shifts


def _only_lab() -> str:
    names = Lab.names()
    if not names:
        raise LabError("there is no lab on this machine", "`roundabout lab up` makes one")
    if len(names) > 1:
        raise UsageError(f"there are several labs: {', '.join(names)}", "name the one you mean")
    return names[0]


def _report(name: str) -> dict[str, Any]:
    """Return a lab as `status --json` prints it. Rates are Gbit/s at the papers' scale."""
    try:
        lab = Lab.find(name)
    except LabError as error:
        return {"name": name, "state": "broken", "problem": error.message, "mend": error.hint}
    pids = lab.pids()
    whole = all(pid is not None for pid in pids.values())
    return {
        "name": name,
        "state": "up" if whole else "broken",
        **({} if whole else {"problem": "some of it died", "mend": f"`roundabout lab down {name}`, then up again"}),
        "topology": lab.topology.name,
        "scale": lab.scale,
        "created_utc": lab.record.created_utc.isoformat(),
        "marking": lab.record.marking,
        "ssh_config": str(lab.ssh_config()),
        "hosts": [
            {
                "name": each.name,
                "address": each.address,
                "pid": pids[each.name],
                "clock_shift_ns": lab.record.clock_shift_ns.get(each.name),
            }
            for each in lab.hosts.values()
        ],
        "switches": [{"name": each, "pid": pids[each]} for each in lab.topology.switches],
        "links": list(_links(lab)),
    }


def _links(lab: Lab) -> Iterator[dict[str, Any]]:
    measured = {link.link: link for link in lab.record.measured}
    for link in lab.topology.links:
        found = measured.get(link.name)
        rates = {port.ifindex: port.payload_rate_gbps for port in found.ports} if found else {}
        yield {
            "name": link.name,
            "ends": list(link.ends),
            "bottleneck": link.bottleneck,
            "payload_rate_gbps": link.payload_rate_gbps,
            "base_rtt_us": found.base_rtt_us if found else None,
            "ports": [
                {"switch": port.switch, "towards": port.towards, "measured_gbps": rates.get(port.ifindex)}
                for port in lab.ports
                if port.link == link.name
            ],
        }


def _show(console: Console, report: dict[str, Any]) -> None:
    colour = "green" if report["state"] == "up" else "red"
    title = Text.assemble((report["state"], colour), "  ", (report["name"], "bold"))
    if "problem" in report:
        title.append(f"  {report['problem']}; {report['mend']}")
    console.print(title)
    if "hosts" not in report:
        return
    console.print(f"    {report['topology']} at 1:{report['scale']:g}, since {report['created_utc'][:19]}Z")
    console.print(Text("    ") + Text(", ").join(_host(host) for host in report["hosts"]))
    console.print(_link_table(Lab.find(report["name"])))


def _host(host: dict[str, Any]) -> Text:
    if not host["pid"]:
        return Text(f"{host['name']} dead", "red")
    shift_ns = host["clock_shift_ns"]
    clock = "" if shift_ns is None else f" (clock {shift_ns / 1e9:+g} s)"
    return Text(f"{host['name']} {host['address']}{clock}")


def _link_table(lab: Lab) -> Table:
    table = Table(
        "link", "direction", "payload rate", "measured", "base RTT", box=None, padding=(0, 2), header_style="dim"
    )
    for link in _links(lab):
        for number, port in enumerate(link["ports"]):
            rtt, measured = link["base_rtt_us"], port["measured_gbps"]
            table.add_row(
                Text(link["name"], style="bold" if link["bottleneck"] else "") if number == 0 else "",
                f"{port['switch']} -> {port['towards']}",
                f"{link['payload_rate_gbps']:g} Gbit/s",
                "not measured" if measured is None else f"{measured:.2f} Gbit/s",
                "" if rtt is None or number else f"{rtt:.0f} us",
            )
    return table
