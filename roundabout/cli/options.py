# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share, so that they read the same everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundabout.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WhichRun = Annotated[str, typer.Argument(metavar="[RUN]", help="A run's folder or id, an experiment, or `last`.")]
Runs = Annotated[Path, typer.Option("--runs", help="Folder that holds all runs.")]
RunJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and everything else on stderr.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Testbed = Annotated[
    str | None,
    typer.Option(help="Where it runs: lab (on this machine, the default), rack, fluid (computed), or one of your own."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Do less of it, as the experiment's `lengths` say.")]
Full = Annotated[bool, typer.Option("--full", help="Do as much of it as the paper did.")]
Scale = Annotated[
    float | None, typer.Option(min=1, help="Divide a lab's rates by this; the calibration's unless given.")
]
Dilation = Annotated[
    float | None,
    typer.Option(min=1, help="Stretch a lab's time so many times: published parameters, nothing calibrated."),
]
Inventory = Annotated[Path | None, typer.Option(help="The inventory of a rack, where it runs then.")]


PICTURES = (".png", ".svg")
Picture = Annotated[Path | None, typer.Option(help="Draw it into this SVG or PNG.")]


def checked_picture(picture: Path | None) -> None:
    """Raises UsageError where no picture can be drawn into that file."""
    if picture and picture.suffix not in PICTURES:
        raise UsageError(f"--picture: found '{picture}', expected a name that ends in {' or '.join(PICTURES)}")
    if picture and not picture.parent.is_dir():
        raise UsageError(f"--picture: found no folder '{picture.parent}', expected one for '{picture.name}'")


def saved(figure: "Figure", picture: Path) -> None:
    """Write a figure into a file that was checked."""
    figure.savefig(picture, dpi=150, metadata={"Date": None} if picture.suffix == ".svg" else None)


def length(*, quick: bool, full: bool) -> str | None:
    """Which of an experiment's `lengths` is asked for. Raises UsageError where both are."""
    if quick and full:
        raise UsageError("found --quick and --full, expected one of them")
    return "quick" if quick else "full" if full else None
