# SPDX-License-Identifier: Apache-2.0
"""`roundabout acceptance`: test how a fabric shares its links."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Inventory, Json, Runs, Testbed
from roundabout.core.errors import UsageError


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    topology: Annotated[str, typer.Option(help="Part of the fabric to test: a topology of experiments/topologies.")] = (
        "dumbbell-2x2"
    ),
    only: Annotated[list[str] | None, typer.Option("--only", help="Test only this part. May be repeated.")] = None,
    limits: Annotated[Path | None, typer.Option(help="File with limits that replace the default limits.")] = None,
    transport: Annotated[str, typer.Option(help="The congestion control that flows and jobs use.")] = "dcqcn",
    collective: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Experiment that runs nccl-tests, to judge its bus bandwidth."),
    ] = None,
    soak: Annotated[float, typer.Option(min=0, metavar="HOURS", help="Repeat all measurements for so many hours.")] = 0,
    tables: Annotated[
        bool,
        typer.Option("--tables", help="Measure the tables of BMWG's draft on AI training fabrics, without limits."),
    ] = False,
    runs: Runs = Path("runs"),
    testbed: Testbed = None,
    inventory: Inventory = None,
    as_json: Json = False,
) -> None:
    """Test if a fabric carries its rates and shares its links fairly: pass, fail (exit status 3) or inconclusive (4).

    The test reads settings back, lets each NIC send to each other one, lets flows share each link, and runs a job
    beside each congestor. It needs root and waits for the machine's lease. With `--tables` it judges nothing, and runs
    on the testbed packets, too.
    """
    # These imports take a second, and only this command needs them.
    from roundabout.checks.acceptance.acceptance import PARTS  # noqa: PLC0415
    from roundabout.checks.acceptance.run import AcceptanceRequest, accept, tabulate  # noqa: PLC0415
    from roundabout.checks.check import select_parts  # noqa: PLC0415

    if tables and (only or limits or collective or soak):
        raise UsageError(
            "--tables: found --only, --limits, --collective or --soak, expected none, because tables are not judged"
        )
    parts = select_parts(only or (), PARTS)
    request = AcceptanceRequest(topology, parts, limits, transport, runs, testbed, inventory, collective, soak)
    (tabulate if tables else accept)(request, as_json=as_json)
