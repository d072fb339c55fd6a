# SPDX-License-Identifier: Apache-2.0
"""`roundabout verify`: reads back what `provision` did."""

import typer

from roundabout.cli.playbook import Inventory, Json, run


def command(inventory: Inventory, as_json: Json = False) -> None:
    """Compare the hosts of an inventory with what is built here, and change nothing."""
    result = run("verify", inventory, as_json=as_json)
    if not as_json:
        typer.echo(f"{len(result.changed)} hosts are as they should be")
