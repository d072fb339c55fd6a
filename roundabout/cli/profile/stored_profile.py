# SPDX-License-Identifier: Apache-2.0
"""The option --save, and the path of the profile that it stores."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from roundabout.cli.options import check_output
from roundabout.core.errors import UsageError
from roundabout.spec import EXPERIMENTS
from roundabout.spec.assembly.library import PROFILES
from roundabout.spec.base import NAME_RULE, Name
from roundabout.spec.reader.yaml_source import shown_path

Save = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Store the profile as profiles/NAME.yaml in this folder, where experiments find it by its name.",
    ),
]
ResultJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and everything else on stderr.")]


def new_profile_path(name: str) -> Path:
    """Return the path of a new profile of that name, where experiments in this folder find it."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise UsageError(f"--save: found '{name}', expected a name of {NAME_RULE}") from None
    path = Path(PROFILES, f"{name}.yaml")
    if existing := next(
        (found for shelf in (Path(PROFILES), EXPERIMENTS / PROFILES) for found in shelf.rglob(path.name)), None
    ):
        raise UsageError(
            f"{shown_path(existing)} exists, expected a new name after --save", "no profile is ever overwritten"
        )
    check_output("--save", path if path.parent.is_dir() else Path(path.name))
    return path
