# SPDX-License-Identifier: Apache-2.0
"""`roundabout schema`: write the JSON Schemas of the specification files."""

from pathlib import Path
from typing import Annotated

import typer

from roundabout.core.errors import RoundaboutError
from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.reader.schema import write_schemas
from roundabout.spec.reader.yaml_source import shown_path
from roundabout.terminal.lines import print_line


def command(
    folder: Annotated[Path, typer.Option(help="Folder for the schemas.")] = EXPERIMENTS / "schema",
) -> None:
    """Write the JSON Schemas with which editors check specification files."""
    try:
        paths = write_schemas(folder)
    except OSError as error:
        raise RoundaboutError(f"cannot write to {folder}: {error.strerror}", "give another --folder") from None
    for path in paths:
        print_line(shown_path(path))
