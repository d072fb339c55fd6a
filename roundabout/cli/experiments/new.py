# SPDX-License-Identifier: Apache-2.0
"""`roundabout new`: create an experiment file as a starting point."""

import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from roundabout.cli.options import check_output
from roundabout.core.errors import UsageError
from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.base import NAME_RULE, Name
from roundabout.store.files import write_text
from roundabout.terminal.lines import print_line

TEMPLATE = Path(__file__).with_name("new.yaml")


def command(
    name: Annotated[str, typer.Argument(help="Name of the experiment. The file is NAME.yaml in this folder.")],
) -> None:
    """Create an experiment file with comments as a starting point. The experiment is valid and can be run."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise UsageError(f"found '{name}', expected a name of {NAME_RULE}") from None
    path = Path(f"{name}.yaml")
    if path.exists():
        raise UsageError(f"found a file {path}, expected none of that name", f"roundabout run {path}")
    check_output("NAME", path)
    values = {"NAME": name, "SCHEMA": str(EXPERIMENTS / "schema" / "experiment.json")}
    write_text(path, re.sub("|".join(values), lambda found: values[found[0]], TEMPLATE.read_text()))
    print_line(path)
    print_line(f"  roundabout run {path} --testbed fluid")
