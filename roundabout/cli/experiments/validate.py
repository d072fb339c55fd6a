# SPDX-License-Identifier: Apache-2.0
"""`roundabout validate`: check specification files without running anything."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from roundabout.cli.experiments.experiments import load_checked_experiment
from roundabout.cli.experiments.feedback import describe_feedback
from roundabout.spec.assembly.library import CATALOG, KINDS, PROFILES, TOPOLOGIES, Library
from roundabout.spec.errors import SpecError
from roundabout.spec.loader import guess_file_kind, is_path, load_experiment, load_profile, load_topology
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
    errors = [error for error in (map(_check, names) if names else _check_library()) if error]
    faults = ((error.message, error.hint) for first in errors for error in (first, *first.further))
    for message, hint in dict.fromkeys(faults):  # jobs and variants that share a faulty field report it once each
        print_error(message, hint)
    if errors:
        raise typer.Exit(SpecError.exit_code)
    count = len(names) if names else sum(len(Library().names(shelf)) for shelf in LOADERS)
    print(f"{count} {'file' if count == 1 else 'files'} checked, nothing wrong")
    for name in names or ():
        shelf = guess_file_kind(name)
        if shelf == TOPOLOGIES:
            print_line(f"{name}: {_feedback(load_topology(name))}")
        elif shelf == CATALOG:
            specs = [cell.spec for cell in load_experiment(name).cells]
            for text in find_warnings(specs):
                print_warning(f"{name}: {text}")
            for line in describe_feedback(specs):
                print_line(f"{name}: {line}")


def _feedback(topology: Topology) -> str:
    """Return a line with the feedback delay of a topology's longest path."""
    sender, receiver = _ends_of_longest_path(topology)
    delay = topology.feedback_delay(sender, receiver)
    return f"a mark cuts a rate after {delay} over an empty network, from {sender} to {receiver}"


def _check_library() -> Iterator[SpecError | None]:
    library = Library()
    for shelf, load in LOADERS.items():
        for name in library.names(shelf):
            yield _error(name, load)


def _check(name: str) -> SpecError | None:
    """Return the first fault, with the kind of file if that was guessed."""
    try:
        shelf = guess_file_kind(name)
    except SpecError as error:
        return error
    error_ = _error(name, LOADERS[shelf])
    if error_ and is_path(name) and shelf != CATALOG:
        error_.hint = "\n".join(filter(None, [error_.hint, f"by its fields, the file is {KINDS[shelf]}"]))
    return error_


def _error(name: str, load: Callable[[str], Any]) -> SpecError | None:
    try:
        load(name)
    except SpecError as error:
        return error
    return None


def _ends_of_longest_path(topology: Topology) -> tuple[str, str]:
    """Return the ends of a path with the longest feedback: in a tree, the farthest host is an end of one."""

    def farthest(sender: str) -> str:
        others = (host for host in topology.hosts if host != sender)
        return max(others, key=lambda each: topology.feedback_delay(sender, each).most_us)

    sender = farthest(topology.hosts[0])
    return sender, farthest(sender)
