# SPDX-License-Identifier: Apache-2.0
"""`roundabout validate`: check specification files without running anything."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from roundabout.cli.experiments.experiments import load_checked_experiment
from roundabout.cli.experiments.feedback import describe_feedback
from roundabout.spec.assembly.library import CATALOG, KINDS, PROFILES, TOPOLOGIES, Library
from roundabout.spec.errors import SpecError
from roundabout.spec.experiment import Experiment
from roundabout.spec.loader import guess_file_kind, is_path, load_profile, load_topology
from roundabout.spec.preconditions import find_warnings
from roundabout.spec.topology import Topology
from roundabout.terminal.lines import print_error, print_line, print_warning

LOADERS: dict[str, Callable[[str], Any]] = {
    CATALOG: load_checked_experiment,
    PROFILES: load_profile,
    TOPOLOGIES: load_topology,
}


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|FILE]...", help="Experiments, profiles and topologies. Default: all of the library."
        ),
    ] = None,
) -> None:
    """Check experiments, profiles and topologies, and print the faults of each with their places.

    Later checks begin when earlier ones have found nothing.
    """
    loaded = [*(map(_load_named, names) if names else _load_library())]
    errors = [each for each in loaded if isinstance(each, SpecError)]
    faults = ((error.message, error.hint) for first in errors for error in (first, *first.further))
    for message, hint in dict.fromkeys(faults):  # jobs and variants that share a faulty field report it once each
        print_error(message, hint)
    if errors:
        raise typer.Exit(SpecError.exit_code)
    print(f"{len(loaded)} {'file' if len(loaded) == 1 else 'files'} checked, nothing wrong")
    for name, found in zip(names or (), loaded, strict=False):
        if isinstance(found, Topology):
            print_line(f"{name}: {_feedback(found)}")
        elif isinstance(found, Experiment):
            specs = [cell.spec for cell in found.cells]
            for text in find_warnings(specs):
                print_warning(f"{name}: {text}")
            for line in describe_feedback(specs):
                print_line(f"{name}: {line}")


def _feedback(topology: Topology) -> str:
    """Return a line with the feedback delay of a topology's longest path."""
    sender, receiver = _ends_of_longest_path(topology)
    delay = topology.feedback_delay(sender, receiver)
    return f"a mark cuts a rate after {delay} over an empty network, from {sender} to {receiver}"


def _load_library() -> Iterator[Any]:
    library = Library()
    for shelf in LOADERS:
        for name in library.names(shelf):
            found = _load(name, shelf)
            yield found if isinstance(found, SpecError) else None  # all contents together would take much memory


def _load_named(name: str) -> Any:
    """Return the content of a file, or its first fault, with the kind of file if that was guessed."""
    try:
        shelf = guess_file_kind(name)
    except SpecError as error:
        return error
    loaded = _load(name, shelf)
    if isinstance(loaded, SpecError) and is_path(name) and shelf != CATALOG:
        loaded.hint = "\n".join(filter(None, [loaded.hint, f"by its fields, the file is {KINDS[shelf]}"]))
    return loaded


def _load(name: str, shelf: str) -> Any:
    """Return the content of a file, or its first fault."""
    try:
        return LOADERS[shelf](name)
    except SpecError as error:
        return error


def _ends_of_longest_path(topology: Topology) -> tuple[str, str]:
    """Return the ends of a path with the longest feedback: in a tree, the farthest host is an end of one."""

    def farthest(sender: str) -> str:
        others = (host for host in topology.hosts if host != sender)
        return max(others, key=lambda each: topology.feedback_delay(sender, each).most_us)

    sender = farthest(topology.hosts[0])
    return sender, farthest(sender)
