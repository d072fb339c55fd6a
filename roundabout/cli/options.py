# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share, so that they read the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

WhichRun = Annotated[str, typer.Argument(metavar="[RUN]", help="A run's folder or id, an experiment, or `last`.")]
Runs = Annotated[Path, typer.Option("--runs", help="Folder that holds all runs.")]
RunJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and everything else on stderr.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Testbed = Annotated[
    str | None,
    typer.Option(help="Where it runs: lab (on this machine, the default), rack, fluid (computed), or one of your own."),
]
Inventory = Annotated[Path | None, typer.Option(help="The inventory of a rack, where it runs then.")]
