# SPDX-License-Identifier: Apache-2.0
"""`roundabout decode`: convert captures to a Parquet table of packets."""

import json
from dataclasses import asdict
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from roundabout.cli.options import Json, check_output
from roundabout.core.errors import UsageError
from roundabout.runner.tables.packets import Totals, write_parquet
from roundabout.terminal.screen import Screen


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Captures in order: pcap or pcapng, may be gzipped.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Output file. Default: the first FILE with the suffix .parquet."),
    ] = None,
    own: Annotated[
        list[str] | None,
        typer.Option("--own", metavar="ADDRESS", help="Address of the capturing host, to determine directions."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Decode captures of TCP and RoCEv2 into one Parquet file (columns: `packets` in docs/reference/store.md)."""
    if not files[0].name:
        raise UsageError(f"FILE: found '{files[0]}', expected the name of a capture")
    target = output or files[0].with_name(files[0].name.removesuffix(".gz")).with_suffix(".parquet")
    if target in files:
        raise UsageError(f"{target} is both decoded and written", "name another file with --output")
    check_output("--output", target)
    for address in own or []:
        _check(address)
    totals = write_parquet(files, target, own or [])
    if as_json:
        print(json.dumps({"output": str(target), **asdict(totals)}))
    else:
        _show(target, totals)


def _check(address: str) -> None:
    try:
        ip_address(address)
    except ValueError as error:
        raise UsageError(f"--own is {address!r}, expected an IPv4 or IPv6 address") from error


def _show(target: Path, totals: Totals) -> None:
    console = Screen(highlight=False, soft_wrap=True)
    console.print(f"{target}: {totals.packets} packets of {totals.flows} flows")
    less = {
        "with headers captured in part": totals.truncated,
        "with headers that contradict themselves": totals.malformed,
        **{f"not decoded: {name}": count for name, count in totals.undecoded_protocols.items()},
        "of flows beyond the first million, which have no number": totals.unnumbered,
    }
    for what, count in less.items():
        if count:
            console.print(f"  {count} {what}")
    for pauses in totals.pauses:
        of_what = "the link" if pauses.priority is None else f"priority {pauses.priority}"
        console.print(
            f"  {pauses.frames} pause frames of {of_what}: {pauses.quanta} quanta in all, {pauses.resumes} resume"
        )
    for warning in (*totals.damage, *totals.skipped):
        console.print(Text.assemble(("warning", "yellow"), f" {warning}"))
