# SPDX-License-Identifier: Apache-2.0
"""`roundabout provision`: prepare the hosts of a rack for experiments."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from roundabout.terminal.playbook import Inventory, Json, run


def command(
    inventory: Inventory,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing. Show the changes that would be made.")
    ] = False,
    no_packages: Annotated[
        bool, typer.Option("--no-packages", help="Install no packages. Name the programs that servers lack.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Deploy programs and settings on the hosts of an inventory. Change only what differs."""
    extra = {"packages_install": False} if no_packages else None
    result = run("site", inventory, extra, show=None if as_json else typer.echo, check=check)
    changes = sum(result.changed.values())
    if as_json:
        typer.echo(json.dumps(asdict(result)))
    elif check:
        typer.echo(f"{changes} changes would be made on {sum(map(bool, result.changed.values()))} hosts; none was")
    else:
        typer.echo(f"{len(result.changed)} hosts ready in {result.seconds:.1f} s, {changes} changes")
