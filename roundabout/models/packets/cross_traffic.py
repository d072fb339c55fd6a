# SPDX-License-Identifier: Apache-2.0
"""The cross traffic of a trial as the engine takes it: connections, flows that are known, and streams."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from roundabout.models.packets.engine import Engine
from roundabout.models.packets.hardware_defaults import TcpHosts
from roundabout.models.packets.link_events import add_route_changes
from roundabout.models.packets.network import BYTES_PER_S_OF_GBPS, Ports
from roundabout.models.packets.structures import FLOW, PS_PER_MS, Structure, make_structure
from roundabout.models.packets.tcp import NAMES, connection_plan, tcp_settings
from roundabout.models.packets.transports import WINDOWED, reaction_plan, transport_values, window_plan
from roundabout.spec import TrialSpec
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.spec.routing import Flow

IPERF_WRITE_BYTES = 128 * 1024
"""What iperf3 writes at once to TCP (-l): the size of its bursts."""


@dataclass(frozen=True)
class Streams:
    """Streams of one cross traffic, which share its load evenly.

    While less than `min_share` of the load arrives, counted after `probe_ms` and then each `step_ms`, all streams end
    and one more is begun, up to `most`.
    """

    number: int
    most: int
    min_share: float
    step_ms: float
    probe_ms: float


@dataclass(frozen=True)
class Load:
    """The flows of one cross traffic, an array of FLOW in the order of starts, or its streams.

    Flows have a pool of at most `max_connections` connections for each receiver and class, in this order. `ends_ms` is
    the end of the flows that are known, after the start of jobs.
    """

    flows: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(0, FLOW))
    classes: int = 1
    max_connections: int = 1
    ends_ms: float = np.inf
    streams: Streams | None = None


@dataclass(frozen=True)
class Loads:
    """The loads of all cross traffic of a trial, by name, from `lead_ms` before the start of jobs on."""

    lead_ms: float = 0.0
    by_name: Mapping[str, Load] = field(default_factory=dict)


NO_LOADS = Loads()


@dataclass(frozen=True)
class PlayedTraffic:
    """The outcome of a cross traffic at the end of the last job, `last_ms` after the start of jobs.

    `start_ms` and `end_ms` are those of its flows, in their order; nan where a flow had not started or ended.
    `delivered_bytes` is what receivers took from the start of jobs on. `result` counts from the beginning.
    """

    last_ms: float
    start_ms: npt.NDArray[np.float64]
    end_ms: npt.NDArray[np.float64]
    delivered_bytes: int
    result: Structure


@dataclass(frozen=True)
class AddedTraffic:
    """A cross traffic in an engine: its number there, and what it sends."""

    engine: Engine
    number: int
    traffic: CrossTraffic
    load: Load

    def add_pools(self, ports: Ports, settings: Mapping[str, int]) -> None:
        """Add a pool for each receiver and class. `settings` are those of TCP. Raises UnsupportedError."""
        for flow in self.traffic.flows:
            for _ in range(self.load.classes):
                self._add_pool(flow, ports, settings)

    def _add_pool(self, flow: Flow, ports: Ports, settings: Mapping[str, int]) -> None:
        topology, transport = ports.topology, self.traffic.transport
        hosts = (topology.host_numbers[flow.sender], topology.host_numbers[flow.receiver])
        routes = ports.route(flow), ports.route(flow.turned)
        rate_gbps = sum(first.link.payload_rate_gbps for first, _ in topology.planes(flow))
        values = transport_values(transport, rate_gbps)
        plan: Structure | None = None
        if transport.name in NAMES:
            pair = self.engine.add_connection(*routes, hosts, connection_plan(settings, transport, values))
        elif transport.name in WINDOWED:
            pair = self.engine.add_window_flow(*routes, hosts, window_plan(values, transport))
        else:
            plan = reaction_plan(values)
            pair = self.engine.add_pair(*routes, hosts, plan)
        add_route_changes(self.engine, ports, pair, flow)
        is_fresh = self.traffic.connections == "fresh" and self.load.streams is None
        self.engine.add_pool(self.number, pair, self.load.max_connections, is_fresh=is_fresh, plan=plan)

    def read(self, lead_ms: float, before: int, last_ms: float) -> PlayedTraffic:
        """Return its outcome until now. `before` is what receivers had at the start of jobs."""
        result = self.engine.traffic_result(self.number)
        start_ms, end_ms = np.zeros(0), np.zeros(0)
        if self.load.streams is None:
            records = self.engine.flow_records(self.number)
            start_ms, end_ms = (
                np.where(records[name] >= 0, records[name] / PS_PER_MS - lead_ms, np.nan)
                for name in ("start_ps", "end_ps")
            )
        return PlayedTraffic(last_ms, start_ms, end_ms, result.delivered - before, result)


def add_cross_traffic(
    engine: Engine, spec: TrialSpec, ports: Ports, hosts: TcpHosts, loads: Loads
) -> dict[str, AddedTraffic]:
    """Add all cross traffic of a trial to an engine, by name. Raises UnsupportedError."""
    found = {}
    for name, load in loads.by_name.items():
        traffic = spec.cross_traffic[name]
        added = AddedTraffic(engine, engine.add_traffic(), traffic, load)
        host = replace(hosts, write_bytes=IPERF_WRITE_BYTES) if load.streams else hosts
        added.add_pools(ports, tcp_settings(spec, host))
        if load.streams:
            engine.set_streams(added.number, _stream_plan(traffic, load.streams))
        else:
            engine.set_flows(added.number, load.flows)
        found[name] = added
    return found


def _stream_plan(traffic: CrossTraffic, streams: Streams) -> Structure:
    return make_structure(
        "stream_plan",
        bytes_per_s=traffic.load_gbps * BYTES_PER_S_OF_GBPS,
        min_share=streams.min_share,
        streams=streams.number,
        max_streams=streams.most,
        write_bytes=IPERF_WRITE_BYTES,
        step_ps=round(streams.step_ms * PS_PER_MS),
        probe_ps=round(streams.probe_ms * PS_PER_MS),
    )
