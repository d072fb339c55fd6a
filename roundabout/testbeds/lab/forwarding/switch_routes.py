# SPDX-License-Identifier: Apache-2.0
"""Routes of a lab's switches where the topology has several paths: the plan's route for each flow.

A switch is a bridge in a tree. With several paths the eBPF program `forward` sends each packet to the port that the
route of its flow says. All flows between two NICs take one route, but flows of jobs may have a route of their own.
A host with several NICs sends by the one whose address the flow's socket is bound to.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from roundabout.runner.trial.jobs import source_ports, worker_ports
from roundabout.spec.remaining_paths import Rerouting
from roundabout.spec.routing import Flow
from roundabout.spec.topology import Hop
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab.ecn.marking import call_switchport
from roundabout.testbeds.lab.network import paths
from roundabout.testbeds.lab.network.layout import Layout


class Entry(NamedTuple):
    """The ports by which a flow's packets enter and leave a switch. TCP ports are 0 for all flows of two NICs."""

    entered_by: int
    sender: str
    receiver: str
    sender_port: int
    receiver_port: int
    left_by: int


def attach(lab: paths.LabPaths, layout: Layout, pids: Mapping[str, int], lock: int) -> None:
    """Forward by routes at every port of a lab. The caller must hold the lab's lock, with the descriptor `lock`."""
    lines = [f"{pids[port.switch]} {port.ifindex}" for port in layout.ports]
    call_switchport(["forward", str(paths.bpf_object_path("forward")), str(lab.pins)], lines, lock)


def set_routes(
    lab: paths.LabPaths, layout: Layout, trial: TrialSpec | None = None, failed: frozenset[str] = frozenset()
) -> None:
    """Replace the routes of a lab by those of its topology, and of the flows of `trial`, without `failed` links."""
    lines = [" ".join(map(str, entry)) for entry in list_entries(layout, trial, failed)]
    call_switchport(["set-routes", str(lab.pins)], lines)


def read_routes(lab: paths.LabPaths) -> dict[Entry, int]:
    """Return the routes of a lab's switches, each with the bytes that took it since it was set."""
    found = json.loads(call_switchport(["show-routes", str(lab.pins)], []))
    return {Entry(*(each[name] for name in Entry._fields)): each["bytes"] for each in found}


def find_differences(lab: paths.LabPaths, layout: Layout, trial: TrialSpec) -> list[str]:
    """Return a line for each entry that a switch has and the plan has not, or the other way round."""
    found, expected = set(read_routes(lab)), set(list_entries(layout, trial))
    return [
        f"route of {entry.sender}:{entry.sender_port} to {entry.receiver}:{entry.receiver_port} by ports "
        f"{entry.entered_by} and {entry.left_by}: {what}"
        for entries, what in ((found - expected, "found it, expected none"), (expected - found, "found none"))
        for entry in sorted(entries)
    ]


def list_entries(layout: Layout, trial: TrialSpec | None = None, failed: frozenset[str] = frozenset()) -> list[Entry]:
    """Return an entry for each switch on the routes between any two hosts, and on those of the flows of `trial`.

    Of hosts with several NICs, those of the same number have a route. Routes avoid `failed` links.
    """
    rerouting = Rerouting(layout.topology, failed)
    routes = (
        rerouting.path(Flow(own.node, other.node, nics=(own.number, other.number)))
        for own, other in layout.links_between
    )
    entries = [entry for route in routes for entry in _cross(layout, route, 0, 0)]
    if trial and trial.topology.hashes_flows:
        own = Rerouting(trial.topology, failed)  # a trial may have another routing than its lab
        entries += (entry for name in trial.jobs for entry in _job_entries(layout, trial, name, own))
    return list(dict.fromkeys(entries))


def _job_entries(layout: Layout, trial: TrialSpec, name: str, rerouting: Rerouting) -> Iterator[Entry]:
    """Yield the entries of a job's flows, and of the packets that come back."""
    job, own_ports, ports = trial.jobs[name], source_ports(trial, name), worker_ports(trial, name)
    for transfer in (transfer for phase in job.profile.phases for transfer in job.transfers(phase)):
        for number in job.flow_numbers(transfer):
            flow = job.flow(name, transfer.sender, transfer.receiver, number, trial.topology)
            own, other = own_ports[transfer.sender] + number, ports[transfer.receiver]
            yield from _cross(layout, rerouting.path(flow), own, other)
            yield from _cross(layout, rerouting.path(flow.turned), other, own)


def _cross(layout: Layout, route: tuple[Hop, ...], sender_port: int, receiver_port: int) -> Iterator[Entry]:
    """Yield an entry for each switch that a route crosses."""
    for before, after in pairwise(route):
        yield Entry(
            layout.ifindex_at(before.link, before.receiver),
            layout.address_at(route[0].link, route[0].sender),
            layout.address_at(route[-1].link, route[-1].receiver),
            sender_port,
            receiver_port,
            layout.ifindex_at(after.link, after.sender),
        )
