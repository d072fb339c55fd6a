# SPDX-License-Identifier: Apache-2.0
"""`roundabout rollback`: brings back the settings that an owner found."""

from typing import Annotated

import typer

from roundabout.cli.playbook import Inventory, Json, run


def command(
    inventory: Inventory,
    owner: Annotated[str, typer.Option(help="Whose settings: provisioning's own, or a run's.")] = "provision",
    as_json: Json = False,
) -> None:
    """Replay the settings journal of each host, also after a crash or a reboot."""
    result = run("rollback", inventory, {"settings_owner": owner}, as_json=as_json)
    if not as_json:
        count = sum(changed > 0 for changed in result.changed.values())
        typer.echo(f"{count} of {len(result.changed)} hosts had settings of {owner} to bring back")
