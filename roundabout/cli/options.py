# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundabout.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Functions import `roundabout.spec`, since that takes longer than a whole command that reads no experiment.


def _experiments(incomplete: str) -> list[str]:
    from roundabout.spec.assembly.library import CATALOG, Library  # noqa: PLC0415

    return [name for name in Library().names(CATALOG) if name.startswith(incomplete)]


WhichExperiment = Annotated[
    str,
    typer.Argument(metavar="NAME|FILE", help="An experiment of the catalog, or a file.", autocompletion=_experiments),
]
WhichRun = Annotated[str, typer.Argument(metavar="[RUN]", help="A run's folder or id, an experiment, or `last`.")]


def utf8_path(path: Path) -> Path:
    """Return an option's path. Raises BadParameter if it is no UTF-8, because JSON files of runs contain it."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise typer.BadParameter(f"{str(path)!a} is no UTF-8.") from error
    return path


Runs = Annotated[Path, typer.Option("--runs", callback=utf8_path, help="Folder of all runs.")]
Results = Annotated[Path | None, typer.Option(help="Folder of publications. Default: the project's results.")]
RunJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and everything else on stderr.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Testbed = Annotated[
    str | None,
    typer.Option(help="Testbed: lab (on this machine, the default), rack, packets or fluid (computed), or a plugin's."),
]
Testbeds = Annotated[
    str | None,
    typer.Option(
        "--testbed",
        metavar="TESTBED[,TESTBED...]",
        help="Testbeds, one after the other: packets and fluid (computed), lab (on this machine), rack, or a plugin's. "
        "Default: packets,lab.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Run the shorter version that the experiment's `lengths` define.")]
Full = Annotated[bool, typer.Option("--full", help="Run the version of the paper's length, if `lengths` defines it.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Set a field, like jobs.j1.transport.T_us=90. May be repeated."),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Play every iteration packet by packet, also where the experiment has skip_within."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="LEVEL",
        help="Run only this variant and its dependencies, or this level of another factor. May be repeated.",
    ),
]
Repetitions = Annotated[
    int | None, typer.Option("--repetitions", metavar="N", help="Number of repetitions of each trial.")
]


def finite_number(value: float | None) -> float | None:
    """Return an option's value. Raises BadParameter for NaN, which passes all comparisons with limits."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


UntilDecided = Annotated[
    float | None,
    typer.Option(
        "--until-decided",
        metavar="MINUTES",
        min=0,
        callback=finite_number,
        help="Double the repetitions, up to three times, until each verdict passes or fails, or the minutes are spent.",
    ),
]


MAX_GBPS = 1e6  # limit of a link's capacity, a guess: bytes are counted in 64 bits


def check_capacity(capacity: float) -> None:
    """Raise UsageError if `capacity`, in Gbit/s, is not above 0 and at most MAX_GBPS."""
    if not 0 < capacity <= MAX_GBPS:
        raise UsageError(f"--capacity: found {capacity:g} Gbit/s, expected more than 0, and {MAX_GBPS:g} at most")


# The limits of `scale` and `dilation` are the same as those of the experiment's fields.
Scale = Annotated[
    float | None,
    typer.Option(
        min=1, max=100_000, callback=finite_number, help="Divisor of rates in a lab. Default: the calibration's."
    ),
]
Dilation = Annotated[
    float | None,
    typer.Option(
        min=1,
        max=1000,
        callback=finite_number,
        help="Factor of times in a lab. The lab then uses published parameters, without calibration.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Processors that compute trials packet by packet. Default: all of this machine."),
]
Executor = Annotated[
    str | None,
    typer.Option(metavar="slurm[:PARTITION]", help="Run the trials on the nodes of a Slurm cluster."),
]
Inventory = Annotated[Path | None, typer.Option(help="Inventory of a rack, which becomes the testbed.")]


PICTURES = (".png", ".svg")
Picture = Annotated[Path | None, typer.Option(help="Plot the result to this SVG or PNG.")]


def check_output(option: str, path: Path, *, is_new: bool = False) -> None:
    """Raise UsageError if no file can be written to `path`. With `is_new`, also if `path` exists.

    `option` is the option's name in the message.
    """
    from roundabout.store.files import unexpected_kind  # noqa: PLC0415 - takes longer to import than `--help` takes

    try:
        kind = unexpected_kind(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option}: found '{path}', expected a file's name: {_reason(error)}") from None
    if not path.parent.is_dir():
        raise UsageError(f"{option}: found no folder '{path.parent}', expected one for '{path.name}'")
    if kind:
        raise UsageError(f"{option}: '{path}' is {kind}, expected a file or a new name")
    if is_new and path.exists():
        raise UsageError(f"{option}: '{path}' exists, expected a new name", "nothing is overwritten: move it away")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{option}: the folder '{path.parent}' cannot be written to, expected one that can")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def check_picture(picture: Path | None, option: str = "--picture") -> None:
    """Raise UsageError if no picture can be written to `picture`, the value of `option`. None is accepted."""
    if picture is None:
        return
    if picture.suffix not in PICTURES:
        raise UsageError(f"{option}: found '{picture}', expected a name that ends in {' or '.join(PICTURES)}")
    check_output(option, picture)


def save_picture(figure: "Figure", picture: Path) -> None:
    """Write a figure to `picture`, which `check_picture` has accepted. Raises StoreError."""
    from roundabout.store.files import replace_file  # noqa: PLC0415 - most commands draw nothing

    metadata = {"Date": None} if picture.suffix == ".svg" else None
    with replace_file(picture) as file:
        figure.savefig(file, format=picture.suffix.removeprefix("."), dpi=150, metadata=metadata)


def chosen_length(*, quick: bool, full: bool) -> str | None:
    """Return the requested length, `quick` or `full`, or None. Raises UsageError if both are requested."""
    if quick and full:
        raise UsageError("found --quick and --full, expected one of them")
    return "quick" if quick else "full" if full else None
