# SPDX-License-Identifier: Apache-2.0
"""`roundabout compare`: two runs side by side."""

import json
from pathlib import Path
from typing import Annotated

import typer

from analysis.compare import compare, table
from roundabout.cli.options import Json, Runs
from roundabout.cli.screen import Screen
from roundabout.store import Run


def command(
    one: Annotated[str, typer.Argument(metavar="A", help="A run's folder or id, an experiment, or `last`.")],
    other: Annotated[str, typer.Argument(metavar="B", help="The run to compare it with.")],
    runs: Runs = Path("runs"),
    mixed: Annotated[bool, typer.Option("--mixed", help="Compare an emulated run with a real one.")] = False,
    as_json: Json = False,
) -> None:
    """Compare the iteration times of two runs, variant by variant and job by job."""
    comparison = compare(Run.open(one, runs), Run.open(other, runs), mixed=mixed)
    if as_json:
        print(json.dumps(comparison.record(), indent=2))
    else:
        Screen().print(table(comparison))
