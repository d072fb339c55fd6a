# SPDX-License-Identifier: Apache-2.0
"""`roundabout validate`: check specifications without running anything."""

import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from roundabout.cli.experiments import checked_experiment
from roundabout.spec.errors import SpecError
from roundabout.spec.library import CATALOG, PROFILES, TOPOLOGIES, Library
from roundabout.spec.load import load_profile, load_topology

LOADERS: dict[str, Callable[[str], Any]] = {
    CATALOG: checked_experiment,
    PROFILES: load_profile,
    TOPOLOGIES: load_topology,
}


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME|FILE]...", help="Experiments; all specifications by default.")
    ] = None,
) -> None:
    """Check experiments, profiles and topologies; say what is wrong with each, and where."""
    checks = [(name, checked_experiment) for name in names] if names else list(_everything())
    errors = [error for error in (_check(name, load) for name, load in checks) if error]
    for error in errors:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
    if errors:
        raise typer.Exit(SpecError.exit_code)
    print(f"{len(checks)} {'file' if len(checks) == 1 else 'files'} checked, nothing wrong")


def _everything() -> Iterator[tuple[str, Callable[[str], Any]]]:
    library = Library()
    for shelf, load in LOADERS.items():
        for name in library.names(shelf):
            yield name, load


def _check(name: str, load: Callable[[str], Any]) -> SpecError | None:
    try:
        load(name)
    except SpecError as error:
        return error
    return None
