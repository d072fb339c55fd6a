# SPDX-License-Identifier: Apache-2.0
"""The capacity of links that cross traffic, which has priority over all jobs, leaves for jobs.

Without known flows, cross traffic takes its load at a constant rate. If the starts of its flows are known, each link
carries the flows first come, first served at its full rate. Jobs get the rest, which is exact at the end of each step,
and spread evenly within. So a job's capacity is off by at most the bytes that a link carries in a step. An earlier link
of a flow's path does not delay the flow on a later link.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roundabout.models.fluid.residual_capacity import Floats, ResidualCapacity
from roundabout.spec import TrialSpec
from roundabout.spec.topology import Direction, Topology

BYTES_PER_MS_OF_GBPS = 1e9 / 8 / 1e3

STEP_MS = 5.0
"""Length of a step, ms: half the time between two bursts, so that bursts show. Each step costs an event.

A step for each flow would cost more, because there is more than one flow per ms. For ResNet-50 at 20 Gbit/s steps cost
4 s of CPU in 1,000 s; means and 99 % tails are within 0.3 % of those with steps of 1 ms.
"""


@dataclass(frozen=True)
class Schedule:
    """The flows of a cross traffic: starts (ms after jobs may start), bytes, and the indices of receivers.

    Flows are in the order of their starts; there are none before `begins_ms` and after `ends_ms`.
    """

    starts_ms: Floats
    sizes: Floats
    receivers: npt.NDArray[np.integer]
    begins_ms: float
    ends_ms: float


def residual_of_loads(spec: TrialSpec) -> dict[Direction, float]:
    """Return the payload, bytes/ms, that each direction of each link carries beside the loads of cross traffic.

    Each receiver of a cross traffic gets an equal part of its load. The rest is 0 if loads exceed the capacity.
    """
    left = capacities(spec.topology)
    for traffic in spec.cross_traffic.values():
        taken = traffic.load_gbps * BYTES_PER_MS_OF_GBPS / len(traffic.receivers)
        for flow in traffic.flows:
            for hop, share in spec.topology.link_shares(flow).items():
                edge = spec.topology.direction(*hop)
                left[edge] = max(left[edge] - share * taken, 0.0)
    return left


def capacities(topology: Topology) -> dict[Direction, float]:
    """Return the payload rate of each direction of each link, bytes/ms."""
    both = ((link, ends) for link in topology.links for ends in (link.ends, link.ends[::-1]))
    return {topology.direction(link, *ends): link.payload_rate_gbps * BYTES_PER_MS_OF_GBPS for link, ends in both}


def residual_of_schedules(spec: TrialSpec, schedules: Mapping[str, Schedule]) -> ResidualCapacity:
    """Return the residual capacity beside cross traffic whose flows are known: `schedules`, by name.

    Cross traffic without a schedule takes its load at a constant rate.

    After the end of the shortest schedule links are free of known flows, so results of jobs that run longer are
    invalid.
    """
    others = {name: traffic for name, traffic in spec.cross_traffic.items() if name not in schedules}
    even = residual_of_loads(spec.model_copy(update={"cross_traffic": others}))
    if not schedules:
        return ResidualCapacity.constant(even)
    steps = int(min(each.ends_ms for each in schedules.values()) // STEP_MS)
    begins_ms = min(each.begins_ms for each in schedules.values())
    left = {edge: np.array([rate]) for edge, rate in even.items()}
    for edge, (starts_ms, sizes) in _flows_by_edge(spec, schedules).items():
        had = _residual_bytes(starts_ms - begins_ms, sizes, even[edge], np.arange(steps + 1.0) * STEP_MS - begins_ms)
        left[edge] = np.append(np.maximum(np.diff(had), 0.0) / STEP_MS, even[edge])
    return ResidualCapacity(left, STEP_MS)


def _flows_by_edge(spec: TrialSpec, schedules: Mapping[str, Schedule]) -> dict[Direction, tuple[Floats, Floats]]:
    """Return starts and bytes of the flows that cross each direction of a link, in order."""
    parts: defaultdict[Direction, list[Floats]] = defaultdict(list)
    for name, each in schedules.items():
        traffic = spec.cross_traffic[name]
        for place, flow in enumerate(traffic.flows):
            own = each.receivers == place
            for hop, share in spec.topology.link_shares(flow).items():
                parts[spec.topology.direction(*hop)].append(np.stack([each.starts_ms[own], share * each.sizes[own]]))
    together = {edge: np.concatenate(flows, axis=1) for edge, flows in parts.items()}
    ordered = {edge: flows[:, np.argsort(flows[0], kind="stable")] for edge, flows in together.items()}
    return {edge: (starts_ms, sizes) for edge, (starts_ms, sizes) in ordered.items()}


def _residual_bytes(starts_ms: Floats, sizes: Floats, bytes_per_ms: float, at_ms: Floats) -> Floats:
    """Return the bytes that a link of such a rate had left from 0 until these instants; none while flows wait."""
    sent = np.concatenate([[0.0], np.cumsum(sizes)])
    by_start = np.maximum.accumulate(np.concatenate([[0.0], bytes_per_ms * starts_ms - sent[:-1]]))
    before = np.searchsorted(starts_ms, at_ms)
    spared: Floats = np.maximum(by_start[before], bytes_per_ms * at_ms - sent[before])
    return spared
