# SPDX-License-Identifier: Apache-2.0
"""Localization of a fault: the links that all bad paths share and no good path crosses."""

from collections.abc import Callable, Iterable

from roundabout.spec.topology import Hop, Topology

Pair = tuple[str, str]
"""A path's hosts: sender and receiver."""


def find_suspects(
    topology: Topology, bad: Iterable[Pair], good: Iterable[Pair], name: Callable[[Hop], str]
) -> list[str]:
    """Return the links that all `bad` paths and no `good` path use, formatted by `name`."""
    ways = [{name(hop) for hop in topology.path(*pair)} for pair in bad]
    fine = {name(hop) for pair in good for hop in topology.path(*pair)}
    return sorted(set.intersection(*ways) - fine) if ways else []


def name_directed_link(hop: Hop) -> str:
    """Return the name of a link and one of its directions."""
    return f"link {hop.link.name}, {hop.sender} to {hop.receiver}"


def name_link(hop: Hop) -> str:
    """Return the name of a link, for both of its directions."""
    return f"link {hop.link.name}"
