# SPDX-License-Identifier: Apache-2.0
"""`roundabout provision`: makes hosts ready for experiments."""

import typer

from roundabout.cli.playbook import Inventory, Json, run


def command(inventory: Inventory, as_json: Json = False) -> None:
    """Deploy programs and settings on the hosts of an inventory; what is there already is left alone."""
    result = run("site", inventory, as_json=as_json)
    if not as_json:
        typer.echo(
            f"{len(result.changed)} hosts ready in {result.seconds:.1f} s, {sum(result.changed.values())} changes"
        )
