# SPDX-License-Identifier: Apache-2.0
"""What `provision`, `verify` and `rollback` have in common: they run one playbook on some hosts."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from roundabout.testbeds import playbooks as provision
from roundabout.testbeds.lab import Lab

Inventory = Annotated[str, typer.Argument(metavar="INVENTORY", help="An inventory of a rack, or lab:NAME.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def run(
    playbook: provision.Playbook,
    inventory: str,
    extra: Mapping[str, Any] | None = None,
    show: Callable[[str], None] | None = None,
    *,
    check: bool = False,
) -> provision.Result:
    """Run `playbook` on the hosts that `inventory` names."""
    with _inventories(inventory) as paths:
        return provision.run_playbook(playbook, paths, extra, show, check=check)


@contextmanager
def _inventories(named: str) -> Iterator[tuple[Path, ...]]:
    lab = named.removeprefix("lab:")
    if lab != named:
        with provision.inventory_file(Lab.open(lab)) as path:
            yield (path,)
    else:
        with provision.rack_inventory(Path(named)) as paths:
            yield paths


def table(*headings: str) -> Table:
    """An empty table in our style; values of hosts are never read as markup."""
    return Table(*headings, box=None, header_style="bold", pad_edge=False)
