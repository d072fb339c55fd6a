# SPDX-License-Identifier: Apache-2.0
"""Crux's paths: the most intense job first, each flow on the least loaded of its equally short paths.

Source: Crux, section 4.1. With ECMP, a flow's source port decides its path.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.crux import communicating_jobs
from roundabout.models.cluster.demands import FlowPorts
from roundabout.models.cluster.paths.candidates import (
    Path,
    PlacedFlow,
    flows_of_jobs,
    ports_without_choice,
    with_present_order,
)
from roundabout.models.cluster.simulator import SchedulerPolicy
from roundabout.models.cluster.state import JobKnowledge, State
from roundabout.spec.topology import Direction


def with_crux_paths(decide: SchedulerPolicy, known: JobKnowledge) -> SchedulerPolicy:
    """Return a policy that chooses the paths of the flows of another policy's placements.

    Intensities are those on the paths without a choice.
    """

    def decide_with_paths(state: State, seed: int) -> PlacementDecision:
        decided = with_present_order(decide(state, seed), state)
        flows = flows_of_jobs(decided, state, known)
        hashed = replace(decided, source_ports=ports_without_choice(flows))
        jobs = sorted(communicating_jobs(hashed, state, known), key=lambda job: -job.intensity)
        return replace(decided, source_ports=least_loaded_ports({job.name: flows[job.name] for job in jobs}))

    return decide_with_paths


def least_loaded_ports(flows: Mapping[str, Iterable[PlacedFlow]]) -> dict[str, FlowPorts]:
    """Return the ports of all flows, by job; each flow in turn takes the path whose fullest switch link is emptiest.

    Of equal paths, the one with the least load in sum is taken, then the one that the flow has without a choice. A
    link's load is the mean demand of earlier flows.
    """
    loads: dict[Direction, float] = {}
    found: dict[str, FlowPorts] = {}
    for job, own in flows.items():
        ports = []
        for flow in own:
            path = min(flow.port_of, key=lambda each: _load(each, loads))
            ports.append(flow.by(path))
            for edge in path:
                loads[edge] = loads.get(edge, 0.0) + flow.mean_gbps
        found[job] = tuple(ports)
    return found


def _load(path: Path, loads: Mapping[Direction, float]) -> tuple[float, float]:
    """Return the largest load and the sum of loads of a path's links between switches."""
    between = [loads.get(edge, 0.0) for edge in path[1:-1]]
    return max(between, default=0.0), sum(between)
