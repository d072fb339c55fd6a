# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile`: the group of commands that make a job's profile, each from another source."""

import typer

from roundabout.cli.profile.chakra import chakra
from roundabout.cli.profile.gpu import gpu
from roundabout.cli.profile.gpu_plan import gpu_plan
from roundabout.cli.profile.measure import measure
from roundabout.cli.profile.records import records

app = typer.Typer(no_args_is_help=True)


@app.callback()
def command() -> None:
    """Make a job's profile from byte counters, profiler records, execution traces, or computing measured on a GPU."""


app.command()(measure)
app.command()(records)
app.command()(chakra)
app.command()(gpu)
app.command()(gpu_plan)
