# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile`: the group of commands that make a job's profile, each from another source."""

import typer

from roundabout.cli.profile import gpu, gpu_plan, measure, records

app = typer.Typer(no_args_is_help=True)


@app.callback()
def command() -> None:
    """Make a job's profile from byte counters, from profiler records, or from computing measured on a GPU."""


app.command("measure")(measure.command)
app.command("records")(records.command)
app.command("gpu")(gpu.command)
app.command("gpu-plan")(gpu_plan.command)
