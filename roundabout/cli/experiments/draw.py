# SPDX-License-Identifier: Apache-2.0
"""`roundabout draw`: draw a topology."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import check_picture, save_picture
from roundabout.spec.loader import load_topology
from roundabout.terminal.lines import print_line


def command(
    name: Annotated[str, typer.Argument(metavar="TOPOLOGY|FILE", help="A topology of the library, or a file.")],
    output: Annotated[
        Path | None, typer.Option(help="Write to this SVG or PNG. Default: NAME.svg in the working folder.")
    ] = None,
) -> None:
    """Draw the hosts, switches and links of a topology, with their rates.

    In a large topology, nodes with equal links share a box, and the picture says so.
    """
    from analysis.render.topology_picture import draw_topology  # noqa: PLC0415 - `--help` need not wait for it

    topology = load_topology(name)
    path = output or Path(f"{topology.name}.svg")
    check_picture(path, "--output")
    save_picture(draw_topology(topology), path)
    print_line(str(path))
