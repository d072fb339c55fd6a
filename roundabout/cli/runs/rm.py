# SPDX-License-Identifier: Apache-2.0
"""`roundabout rm`: delete runs."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Runs
from roundabout.cli.runs.runs import format_megabytes
from roundabout.core.errors import UsageError
from roundabout.store import Run
from roundabout.terminal.lines import print_line


def command(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids or folders of runs.")],
    runs: Runs = Path("runs"),
    yes: Annotated[bool, typer.Option("--yes", help="Delete without a question.")] = False,
) -> None:
    """Delete runs after a question. A run that is being executed is not deleted."""
    found = [_open_named(name, runs) for name in names]
    for run in found:
        print_line(f"{run.experiment} {run.id}: {format_megabytes(run.size_bytes)} MB in {run.path}")
    if yes or typer.confirm(f"delete {'this run' if len(found) == 1 else f'these {len(found)} runs'} for good?"):
        for run in found:
            run.delete()
            print_line(f"deleted {run.id}")


def _open_named(name: str, runs: Path) -> Run:
    """Return the run of this id or folder.

    Raises UsageError for a name that matches by chance: an experiment, or `last`.
    """
    run = Run.open(name, runs)
    if name != run.id and Path(name).resolve() != run.path:
        raise UsageError(f"found '{name}', expected a run's id or its folder", f"`{run.id}`, if that one is meant")
    return run
