# SPDX-License-Identifier: Apache-2.0
"""A scheduler's tree of switches as a topology. Schedulers name switches and hosts, and give no rates."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundabout.spec.errors import SpecError, shorten
from roundabout.spec.topology import Link, Topology

ROOT_HINT = "give one switch above all others, because a job's workers may move between any two hosts"
PARENTS_HINT = "give one switch for all that join the same switches, as the Topology Guide of Slurm recommends"


@dataclass(frozen=True)
class Switch:
    """A switch, its hosts, and the switches below it. `line` is its line in the file."""

    name: str
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    line: int | None


def build_topology(file: str, switches: Sequence[Switch], capacity_gbps: float) -> Topology:
    """Return the tree with one cable above each host and each switch, all of this payload rate in Gbit/s.

    The topology is not validated again: names of a cluster's hosts may be longer than those of a testbed's hosts.
    Raises SpecError with the line if the switches do not form one tree.
    """
    _check_names(file, switches)
    above = _find_parents(file, switches)
    _check_root(file, switches, above)
    hosts = tuple(host for switch in switches for host in switch.hosts)
    if not hosts:
        raise SpecError(file, "no host", "hosts below the switches")
    ends = [(host, switch.name) for switch in switches for host in switch.hosts]
    ends += [(lower, switch.name) for lower, switch in above.items()]
    return Topology.model_construct(
        name=file,
        about="a scheduler's tree of switches",
        line_rate_gbps=capacity_gbps,
        payload_rate_gbps=capacity_gbps,
        queue="lossless",
        hosts=hosts,
        switches=tuple(switch.name for switch in switches),
        links=tuple(_cable(*each, capacity_gbps) for each in ends),
    )


def _cable(lower: str, upper: str, gbps: float) -> Link:
    return Link.model_construct(name=lower, ends=(lower, upper), line_rate_gbps=gbps, payload_rate_gbps=gbps)


def _check_names(file: str, switches: Sequence[Switch]) -> None:
    first: dict[str, int | None] = {}
    for switch in switches:
        for name in (switch.name, *switch.hosts):
            if name in first:
                found = f"{shorten(name)} a second time (first in line {first[name]})"
                raise SpecError(file, found, "each switch once, and each host below one switch", line=switch.line)
            first[name] = switch.line


def _find_parents(file: str, switches: Sequence[Switch]) -> dict[str, Switch]:
    """Return the switch above each switch that is below one."""
    known = {switch.name for switch in switches}
    above: dict[str, Switch] = {}
    for switch in switches:
        for lower in switch.switches:
            if lower not in known:
                raise SpecError(file, f"no switch {shorten(lower)}", "it in this file", line=switch.line)
            if lower in above:
                found = f"{shorten(lower)} below a second switch (first in line {above[lower].line})"
                raise SpecError(file, found, "each switch below one", line=switch.line, hint=PARENTS_HINT)
            above[lower] = switch
    return above


def _check_root(file: str, switches: Sequence[Switch], above: dict[str, Switch]) -> None:
    roots = [switch for switch in switches if switch.name not in above]
    if len(roots) > 1:
        found = f"no switch above both {shorten(roots[0].name)} and {shorten(roots[1].name)}"
        raise SpecError(file, found, "one tree", line=roots[1].line, hint=ROOT_HINT)
    below = {switch.name: switch.switches for switch in switches}
    reached = [root.name for root in roots]
    for name in reached:
        reached += below[name]
    if apart := [switch for switch in switches if switch.name not in set(reached)]:
        found = f"a loop of switches through {shorten(apart[0].name)}"
        raise SpecError(file, found, "a tree", line=apart[0].line)
