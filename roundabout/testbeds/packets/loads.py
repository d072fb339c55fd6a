# SPDX-License-Identifier: Apache-2.0
"""The loads of a trial's cross traffic: flows as crossgen draws them with the trial's seed, and iperf's streams."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from roundabout.models.packets import NO_LOADS, Load, Loads, Streams
from roundabout.models.packets.structures import FLOW
from roundabout.plan import PlannedTrial
from roundabout.runner.hosts.host_group import FullScale
from roundabout.runner.trial.cross_traffic import LEAD_MS, MAX_FRESH, MAX_PARALLEL, PROBE_MS, parallel_connections
from roundabout.runner.trial.load_files import LoadFile, draw_loads
from roundabout.spec import TrialSpec
from roundabout.spec.cross_traffic import CrossTraffic

MAX_POOLED = 128
"""Connections to each receiver and class that `crossgen send` opens at most (--most-connections)."""
REACHED = 0.98
"""Share of the requested load at which iperf.py is content (crossgen/iperf.py)."""
STEP_MS = 1000.0
"""Interval at which iperf3 reports its rate, which iperf.py compares with the load."""
PS_PER_NS = 1000


@dataclass(frozen=True)
class PlannedLoads:
    """The cross traffic of a trial as the engine takes it, and the load files of random cross traffic, by name."""

    loads: Loads = NO_LOADS
    files: Mapping[str, LoadFile] = field(default_factory=dict)


def plan_loads(trial: PlannedTrial) -> PlannedLoads:
    """Plan all cross traffic of the trial with a load above 0. Raises LoadError."""
    sending = {name: each for name, each in trial.spec.cross_traffic.items() if each.load_gbps > 0}
    if not sending:
        return PlannedLoads()
    files = draw_loads(trial, FullScale())
    loads = {
        name: _flows(each, files[name]) if name in files else _streams(trial.spec, each)
        for name, each in sending.items()
    }
    return PlannedLoads(Loads(LEAD_MS, loads), files)


def _flows(traffic: CrossTraffic, file: LoadFile) -> Load:
    classes = len(file.header["classes"])
    flows = np.zeros(len(file.flows), FLOW)
    flows["at_ps"] = file.flows["start_ns"] * PS_PER_NS
    flows["bytes"] = file.flows["bytes"]
    flows["pool"] = file.flows["destination"].astype(np.int64) * classes + file.flows["class"]
    ends_ms = file.header["duration_ns"] / 1e6 - LEAD_MS
    return Load(flows, classes, MAX_FRESH if traffic.connections == "fresh" else MAX_POOLED, ends_ms)


def _streams(spec: TrialSpec, traffic: CrossTraffic) -> Load:
    (flow,) = traffic.flows
    link_gbps = spec.topology.path_payload_gbps(*flow)
    number = parallel_connections(traffic.load_gbps, link_gbps)
    return Load(streams=Streams(number, MAX_PARALLEL, REACHED, STEP_MS, PROBE_MS))
