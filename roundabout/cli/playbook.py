# SPDX-License-Identifier: Apache-2.0
"""What `provision`, `verify` and `rollback` have in common: they run one playbook on some hosts."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from roundabout import provision
from roundabout.testbeds.lab import Lab

Inventory = Annotated[str, typer.Argument(metavar="INVENTORY", help="An Ansible inventory, or lab:NAME.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def run(
    playbook: provision.Playbook, inventory: str, extra: Mapping[str, Any] | None = None, *, as_json: bool
) -> provision.Result:
    """Run `playbook` on the hosts that `inventory` names, showing Ansible's progress unless JSON is wanted."""
    show = None if as_json else typer.echo
    lab = inventory.removeprefix("lab:")
    if lab == inventory:
        result = provision.run_playbook(playbook, Path(inventory), extra, show)
    else:
        with provision.inventory_file(Lab.open(lab)) as path:
            result = provision.run_playbook(playbook, path, extra, show)
    if as_json:
        typer.echo(json.dumps(asdict(result)))
    return result
