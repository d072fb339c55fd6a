# SPDX-License-Identifier: Apache-2.0
"""Routes of a trial's flows in a topology with several paths, as plans show them and runs record them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from roundabout.spec.job import ResolvedJob
from roundabout.spec.patterns import Transfer
from roundabout.spec.topology import Hop
from roundabout.spec.trial_spec import TrialSpec


class FlowRoute(NamedTuple):
    """The cables that a flow crosses, in order. `number` counts the flows between two hosts that have other paths."""

    user: str  # a job or a cross traffic
    sender: str
    receiver: str
    number: int
    cables: tuple[str, ...]

    def __str__(self) -> str:
        flow = f" {self.number}" if self.number else ""
        return f"{self.user}{flow}, {self.sender} to {self.receiver}: {', '.join(self.cables)}"


def list_routes(spec: TrialSpec) -> tuple[FlowRoute, ...]:
    """Return the route of each flow of a trial.

    There is none where the topology is a tree, whose paths need no choice, or where packets of a flow take different
    paths.
    """
    if spec.topology.is_tree or spec.topology.spreads_packets:
        return ()
    found: dict[FlowRoute, None] = {}
    for name, job in spec.jobs.items():
        for phase in job.profile.phases:
            for transfer in job.transfers(phase):
                found |= dict.fromkeys(_job_routes(spec, name, job, transfer))
    for name, traffic in spec.cross_traffic.items():
        for flow in traffic.flows:
            found[FlowRoute(name, flow.sender, flow.receiver, 0, _cables(spec.topology.path(*flow)))] = None
    return tuple(found)


def _job_routes(spec: TrialSpec, name: str, job: ResolvedJob, transfer: Transfer) -> list[FlowRoute]:
    ends = job.workers[transfer.sender], job.workers[transfer.receiver]
    numbers, routes = job.routed_flows(transfer, spec.topology), job.routes(name, transfer, spec.topology)
    return [FlowRoute(name, *ends, each, _cables(route)) for each, route in zip(numbers, routes, strict=True) if route]


def _cables(path: Iterable[Hop]) -> tuple[str, ...]:
    return tuple(hop.link.name for hop in path)


def record_routes(spec: TrialSpec) -> dict[str, Any]:
    """Return the field `routes` of trial.json and of `plan --json`: empty for a tree, whose records stay as before."""
    found = list_routes(spec)
    return {"routes": [each._asdict() for each in found]} if found else {}
