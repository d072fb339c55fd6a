# SPDX-License-Identifier: Apache-2.0
"""Delays and paths chosen together, as by FORESIGHT (IFIP Networking 2025), of which only the abstract is at hand.

Schedules in time and in space alternate, each with what the other left. In time, Cassini's timetables keep the sending
phases on a link apart. In space, flows that still contend take other paths.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from roundabout.models.cassini.circles import Circle, Floats
from roundabout.models.cluster.cassini import PlacementDecision, PlacementScore
from roundabout.models.cluster.crux import demand_finder
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
from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS, capacities
from roundabout.spec.cassini import THRESHOLD, Timetable
from roundabout.spec.topology import Direction, Topology

ROUNDS = 4
"""Most rounds of time and space. A guess: the abstract prints no number. More rounds find more, and take more time."""

INSTANTS = 512
"""Number of random instants at which demands are compared. With more, smaller differences of paths count."""

HORIZON_MS = 1e6
"""The range of instants, ms. In a shorter range, jobs with timetables of different periods meet at few phases."""

MIN_FALL = 1e-6
"""Least fall of a mean excess, in shares of a link, for which a flow takes another path; less is rounding."""


def with_foresight(decide: SchedulerPolicy, known: JobKnowledge) -> SchedulerPolicy:
    """Return a policy that chooses time-shifts and paths for the jobs of another policy's placements."""

    def decide_jointly(state: State, seed: int) -> PlacementDecision:
        decided = with_present_order(decide(state, seed), state)
        flows = flows_of_jobs(decided, state, known)
        plan = replace(decided, source_ports=ports_without_choice(flows))
        found: list[tuple[float, PlacementDecision]] = []
        for _ in range(ROUNDS):
            plan = replace(plan, timetables=_timetables(plan, state, known))
            space = PathSearch(flows, plan.source_ports, plan.timetables, state.topology)
            found.append((space.excess, plan))
            if not space.relieve():
                break
            plan = replace(plan, source_ports=space.source_ports)
        return min(found, key=lambda each: each[0])[1]

    return decide_jointly


def _timetables(plan: PlacementDecision, state: State, known: JobKnowledge) -> dict[str, Timetable]:
    shared_links = demand_finder(plan, state, known).shared_links(plan.placements)
    return PlacementScore(shared_links).timetables(THRESHOLD)


class PathSearch:
    """A search of paths on which flows contend less while jobs follow their timetables.

    Phases of jobs without a timetable are random. `flows` are those of each job, and `ports` their present ports.
    """

    def __init__(
        self,
        flows: Mapping[str, Iterable[PlacedFlow]],
        ports: Mapping[str, FlowPorts],
        timetables: Mapping[str, Timetable],
        topology: Topology,
    ) -> None:
        self._flows = [flow for own in flows.values() for flow in own]
        chosen = [each.port for own in ports.values() for each in own]
        self._paths = [flow.path_of(port) for flow, port in zip(self._flows, chosen, strict=True)]
        self._gbps = _capacity_gbps(topology)
        random = np.random.default_rng(0)
        at_ms = random.uniform(0, HORIZON_MS, INSTANTS)
        self._demands: list[Floats] = []
        for job, own in flows.items():
            turns = random.uniform(0, 1, INSTANTS)
            self._demands += [_demand_gbps(flow.circle, timetables.get(job), at_ms, turns) for flow in own]
        self._loads: dict[Direction, Floats] = {}
        for path, demand in zip(self._paths, self._demands, strict=True):
            self._add(path, demand)

    @property
    def excess(self) -> float:
        """Return the sum over links of the mean demand beyond the rate, in shares of the rate."""
        return sum(self._excess(edge) for edge in self._loads)

    @property
    def source_ports(self) -> dict[str, FlowPorts]:
        """Return the ports of all flows on their present paths, by job."""
        found: dict[str, FlowPorts] = {}
        for flow, path in zip(self._flows, self._paths, strict=True):
            found[flow.circle.job] = (*found.get(flow.circle.job, ()), flow.by(path))
        return found

    def relieve(self) -> bool:
        """Let each contending flow in turn take the path with the least excess; return True if one took another."""
        is_changed = False
        for place, (flow, demand) in enumerate(zip(self._flows, self._demands, strict=True)):
            before = self._paths[place]
            if any(self._excess(edge) > 0 for edge in before[1:-1]):
                self._add(before, -demand)
                costs = {path: self._cost(path, demand) for path in flow.port_of}
                best = min(costs, key=costs.__getitem__)
                after = best if costs[best] < costs[before] - MIN_FALL else before
                self._add(after, demand)
                self._paths[place] = after
                is_changed |= after != before
        return is_changed

    def _add(self, path: Path, demand: Floats) -> None:
        for edge in path:
            self._loads[edge] = self._loads.get(edge, 0.0) + demand

    def _cost(self, path: Path, demand: Floats) -> float:
        return sum(self._excess(edge, demand) - self._excess(edge) for edge in path[1:-1])

    def _excess(self, edge: Direction, more: Floats | float = 0.0) -> float:
        load = self._loads.get(edge, 0.0) + more
        return float(np.maximum(load - self._gbps[edge], 0).mean() / self._gbps[edge])


@lru_cache(maxsize=64)
def _capacity_gbps(topology: Topology) -> Mapping[Direction, float]:
    return {edge: rate / BYTES_PER_MS_OF_GBPS for edge, rate in capacities(topology).items()}


def _demand_gbps(circle: Circle, timetable: Timetable | None, at_ms: Floats, turns: Floats) -> Floats:
    """Return a demand at instants, by the job's timetable, or at random turns of an iteration without one."""
    if timetable is None:
        return circle.demand_gbps(turns * circle.iteration_ms)
    return circle.demand_gbps((at_ms - timetable.shift_ms) % timetable.period_ms)
