# SPDX-License-Identifier: Apache-2.0
"""Routes of a trial's flows from routers' answers, beside the planned ones."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from roundabout.plan import PlannedTrial
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.session.host_session import HostSession
from roundabout.runner.trial.routes.flow_probes import Answers, FlowProbe, list_probes, probe_routes
from roundabout.spec import Topology


class FoundRoute(NamedTuple):
    """The route of a flow as it was found: its switches and cables in order, None where one is not known.

    `unknown` is the reason for what is not known. `as_planned` is None if not all is known, and the known part agrees
    with the plan.
    """

    user: str
    sender: str
    receiver: str
    number: int
    source_port: int | None
    destination_port: int | None
    switches: tuple[str | None, ...]
    cables: tuple[str | None, ...]
    unknown: str | None
    as_planned: bool | None

    def __str__(self) -> str:
        return f"{self.user} flow {self.number}, {self.sender} to {self.receiver}"


def read_routes(session: HostSession, trial: PlannedTrial) -> list[FoundRoute]:
    """Return the route that switches give to each flow of the trial's jobs. Raises LostHostError.

    The list is empty for a tree, and where this project sets the switches' routes itself.
    """
    addresses = session.site.switch_addresses
    if addresses is None or trial.spec.topology.is_tree:
        return []
    probes = list_probes(trial, session.site)

    def on_host(host: Host) -> dict[FlowProbe, Answers | str]:
        own = [probe for probe in probes if probe.sender == host.name]
        return probe_routes(session.connections[host.name], host, own)

    answers = {probe: found for each in session.on_each_host(on_host).values() for probe, found in each.items()}
    return [find_route(probe, answers.get(probe, ()), addresses, trial.spec.topology) for probe in probes]


def find_route(
    probe: FlowProbe, answers: Answers | str, switch_of: Mapping[str, str], topology: Topology
) -> FoundRoute:
    """Return the route of a flow by the addresses that answered its probe, and by the switch of each address.

    `answers` is the reason if the probe was not sent.
    """
    flow = (*probe[:4], probe.source_port, probe.destination_port)
    if probe.hidden or isinstance(answers, str):
        reason = probe.hidden or str(answers)
        return FoundRoute(*flow, (), (), reason, None)
    switches = tuple(None if address is None else switch_of.get(address) for address in answers)
    joining = [_cables_between(topology, *ends) for ends in pairwise((probe.sender, *switches, probe.receiver))]
    cables = tuple(names[0] if len(names) == 1 else None for names in joining)
    unknown = next(_describe_gaps(answers, switches, joining, probe), None)
    differs = any(found not in (None, planned) for found, planned in zip(switches, probe.planned_switches, strict=True))
    return FoundRoute(*flow, switches, cables, unknown, False if differs else None if unknown else True)


def _cables_between(topology: Topology, one: str | None, other: str | None) -> list[str]:
    return [link.name for link in topology.links if {one, other} == set(link.ends)]


def _describe_gaps(
    answers: Sequence[str | None], switches: Sequence[str | None], joining: Sequence[list[str]], probe: FlowProbe
) -> Iterator[str]:
    """Yield the reasons for what is not known of a route."""
    for hop, (address, switch) in enumerate(zip(answers, switches, strict=True), start=1):
        if address is None:
            yield f"no router answered at hop {hop}"
        elif switch is None:
            yield f"{address} answered at hop {hop}, which the inventory gives to no switch"
    for (one, other), names in zip(pairwise((probe.sender, *switches, probe.receiver)), joining, strict=True):
        if one and other and len(names) != 1:
            yield f"{len(names)} cables of the topology join {one} and {other}"


def describe_differences(found: Sequence[FoundRoute]) -> str | None:
    """Return a notice about routes that differ from the plan or are not known, or None if all are planned."""
    other = [route for route in found if route.as_planned is False]
    unknown = [route for route in found if route.as_planned is None]
    parts = []
    if other:
        switches = ", ".join(switch or "?" for switch in other[0].switches)
        parts.append(
            f"{len(other)} of {len(found)} flows take other switches than planned, as {other[0]}: {switches}. Switches "
            "do not hash as the topology's `routing` says: what reports derive from planned routes does not hold here"
        )
    if unknown:
        parts.append(
            f"the routes of {len(unknown)} of {len(found)} flows are not known, as {unknown[0]}: {unknown[0].unknown}"
        )
    return "; ".join([*parts, "`found_routes` in trial.json has all of them (docs/how-to/rack.md)"]) if parts else None
