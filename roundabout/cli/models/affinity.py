# SPDX-License-Identifier: Apache-2.0
"""`roundabout affinity`: compute one time-shift for each job of an experiment over all shared links."""

import json
from typing import Annotated

import typer

from roundabout.cli.options import Json, Picture, check_picture, save_picture
from roundabout.spec import load_experiment
from roundabout.terminal.screen import Screen


def command(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="An experiment of the catalog, or a file.")],
    picture: Picture = None,
    as_json: Json = False,
) -> None:
    """Score each link that jobs share, and compute time-shifts that suit all links, by the affinity graph."""
    from analysis.render import screen  # noqa: PLC0415
    from analysis.reports import affinity  # noqa: PLC0415 - `--help` need not wait for it

    check_picture(picture)
    found = affinity.placements((cell.levels, cell.spec) for cell in load_experiment(name).cells)
    if picture:
        save_picture(affinity.figure(found), picture)
    if as_json:
        print(json.dumps([affinity.record(each) for each in found], indent=2))
        return
    Screen().print(screen.table_renderable(affinity.table(found)))
