# SPDX-License-Identifier: Apache-2.0
"""`roundabout acceptance`: test how a fabric shares its links."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Inventory, Json, Runs, Testbed


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    topology: Annotated[str, typer.Option(help="Part of the fabric to test: a topology of experiments/topologies.")] = (
        "dumbbell-2x2"
    ),
    only: Annotated[list[str] | None, typer.Option("--only", help="Test only this part. May be repeated.")] = None,
    limits: Annotated[Path | None, typer.Option(help="File with limits that replace the default limits.")] = None,
    transport: Annotated[str, typer.Option(help="The congestion control that flows and jobs use.")] = "dcqcn",
    runs: Runs = Path("runs"),
    testbed: Testbed = None,
    inventory: Inventory = None,
    as_json: Json = False,
) -> None:
    """Test in five minutes if a fabric shares its links fairly: pass or fail (exit status 3), and a page.

    The test reads settings back, lets flows share each link, and runs a job beside each congestor. It needs root and
    waits for the machine's lease.
    """
    # These imports take a second, and only this command needs them.
    from roundabout.checks.acceptance.acceptance import PARTS  # noqa: PLC0415
    from roundabout.checks.acceptance.run import AcceptanceRequest, accept  # noqa: PLC0415
    from roundabout.checks.check import select_parts  # noqa: PLC0415

    accept(
        AcceptanceRequest(topology, select_parts(only or (), PARTS), limits, transport, runs, testbed, inventory),
        as_json=as_json,
    )
