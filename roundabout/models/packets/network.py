# SPDX-License-Identifier: Apache-2.0
"""The ports and NICs of a trial's topology, as the engine takes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from roundabout.core.errors import RoundaboutError
from roundabout.models.packets.hardware_defaults import Fabric, frame_bytes, payload_bytes
from roundabout.models.packets.structures import PS_PER_US, Structure, make_structure
from roundabout.spec import TrialSpec
from roundabout.spec.frames import AROUND_BYTES
from roundabout.spec.pfc import CONTROL_BYTES, headroom_bytes
from roundabout.spec.remaining_paths import Rerouting
from roundabout.spec.routing import Flow
from roundabout.spec.topology import Direction, Hop, Link, Topology
from roundabout.spec.transports import Ecn
from roundabout.spec.transports.queues import drop_tail_bytes, step_bytes

BYTES_PER_S_OF_GBPS = 1e9 / 8

NEVER_MARK = Ecn(Kmin_bytes=0, Kmax_bytes=0, Pmax=0)


class UnsupportedError(RoundaboutError):
    """The packet-level model cannot play a trial."""


@dataclass(frozen=True)
class Ports:
    """The directions of a topology's links, each with the port that feeds it; the two of a link are neighbors.

    `reroutings` are those that follow the trial's events, each with its instant in ms.
    """

    topology: Topology
    directions: tuple[tuple[tuple[str, str], Link], ...]
    numbers: Mapping[Direction, int]
    routes: dict[Flow, tuple[int, ...]] = field(default_factory=dict)
    """The requested ones: hosts have several queue pairs on each."""
    reroutings: tuple[tuple[float, Rerouting], ...] = ()

    @cached_property
    def switches(self) -> Mapping[str, int]:
        """Return the number of each switch."""
        return {name: number for number, name in enumerate(self.topology.switches)}

    def route(self, flow: Flow) -> tuple[int, ...]:
        """Return the ports that a flow crosses from one host to another.

        If packets of a flow take different paths, return the ports by which they leave the first host.
        """
        if flow not in self.routes:
            spreads, planes = self.topology.spreads_packets, self.topology.planes
            path = tuple(first for first, _ in planes(flow)) if spreads else self.topology.path(*flow)
            self.routes[flow] = self._numbered(path)
        return self.routes[flow]

    def send_gbps(self, host: str) -> float:
        """Return the payload rate of a host's first NIC, or of all NICs if each flow takes them all, in Gbit/s."""
        routing, links = self.topology.routing, self.topology.links_of(host)
        return sum(link.payload_rate_gbps for link in (links if routing and routing.planes else links[:1]))

    def later_routes(self, flow: Flow) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
        """Yield each change of a flow's route: its instant in ms, and the ports there and back from then on."""
        present = self.route(flow), self.route(flow.turned)
        for at_ms, rerouting in self.reroutings:
            found = self._numbered(rerouting.path(flow)), self._numbered(rerouting.path(flow.turned))
            if found != present:
                yield at_ms, *found
            present = found

    def _numbered(self, path: tuple[Hop, ...]) -> tuple[int, ...]:
        return tuple(self.numbers[direction] for direction in self.topology.directions(path))


def number_trial_ports(spec: TrialSpec) -> Ports:
    """Return the ports of a trial's topology by number, with the routes that follow its events."""
    changes = () if spec.topology.spreads_packets else spec.route_changes
    reroutings = tuple((at_ms, Rerouting(spec.topology, failed)) for at_ms, failed in changes)
    return replace(number_ports(spec.topology), reroutings=reroutings)


def number_ports(topology: Topology) -> Ports:
    """Return the ports of a topology by number."""
    directions = tuple((ends, link) for link in topology.links for ends in (link.ends, link.ends[::-1]))
    numbers = {topology.direction(link, *ends): place for place, (ends, link) in enumerate(directions)}
    return Ports(topology, directions, numbers)


def ecn_thresholds(spec: TrialSpec, fabric: Fabric) -> Ecn:
    """Return the marking thresholds of switches: those that transports require, else the fabric's.

    A step is as high as the bottleneck's rate asks, and drop-tail never marks.

    Raises:
        UnsupportedError: transports ask for different thresholds.
    """
    if spec.queue == "drop-tail":
        return NEVER_MARK
    users = [*(job.transport for job in spec.jobs.values()), *spec.transport_by_host.values()]
    requested = {user.thresholds for user in users if user.thresholds}
    if len(requested) > 1:
        found = "; ".join(sorted(map(str, requested)))
        raise UnsupportedError(
            f"transport.ecn: found different thresholds ({found}), expected one for all switches",
            "give all jobs the same `set` or `ecn`",
        )
    if requested:
        return requested.pop()
    if spec.queue == "step":
        step = step_bytes(spec.topology.bottleneck.line_rate_gbps, spec.topology.mtu_bytes)
        return Ecn(Kmin_bytes=step, Kmax_bytes=step, Pmax=1)
    return fabric.red if spec.queue == "red" else fabric.ecn


def plan_ports(spec: TrialSpec, fabric: Fabric, ports: Ports) -> list[Structure]:
    """Return the plan of each port. Lossless links have PFC unless the trial's queues drop. Raises UnsupportedError."""
    ecn = ecn_thresholds(spec, fabric)
    return [_plan_port(spec, fabric, ecn, ports, Hop(link, *ends)) for ends, link in ports.directions]


def _plan_port(spec: TrialSpec, fabric: Fabric, ecn: Ecn, ports: Ports, hop: Hop) -> Structure:
    link, delay_us = hop.link, spec.topology.hop_delay_us(hop)
    payload, line = (rate * BYTES_PER_S_OF_GBPS for rate in (link.payload_rate_gbps, link.line_rate_gbps))
    own = spec.topology.queue_bytes and round(spec.topology.queue_bytes * link.queue_share)
    longest = own or (-1 if spec.topology.buffer else drop_tail_bytes(link.payload_rate_gbps))
    frame = frame_bytes(payload_bytes(spec.topology.mtu_bytes))
    round_trip_s = (delay_us + spec.topology.hop_delay_us(hop.turned)) / 1e6
    host = spec.topology.host_numbers.get(hop.sender, -1)
    from_host = host >= 0
    return make_structure(
        "port_plan",
        payload_bytes_per_s=payload,
        line_bytes_per_s=line,
        delay_ps=round(delay_us * PS_PER_US),
        queue_bytes=longest if spec.may_drop and not from_host else -1,
        kmin_bytes=round(ecn.Kmin_bytes * link.queue_share),
        kmax_bytes=round(ecn.Kmax_bytes * link.queue_share),
        pmax=0.0 if from_host else ecn.Pmax,
        xoff_bytes=-1 if spec.may_drop else fabric.xoff_bytes,
        xon_bytes=fabric.xon_bytes,
        buffer_bytes=fabric.xoff_bytes + headroom_bytes(line, round_trip_s, frame),
        host=host,
        trims=spec.topology.trimming,
        marks_on_arrival=fabric.marks_on_arrival,
        from_switch=ports.switches.get(hop.sender, -1),
        to_switch=ports.switches.get(hop.receiver, -1),
    )


ROUTINGS = ("spray", "flowlet", "adaptive", "bitmap", "reps")
"""By their numbers in native/c_api.h, from 1; 0 are routes that do not change."""


def plan_routing(topology: Topology) -> Structure:
    """Return the plan of how packets of one flow find different paths."""
    routing = topology.routing
    assert routing
    gap_ps = round((routing.gap_us or 0) * PS_PER_US)
    policy = 1 + ROUTINGS.index(routing.name)
    return make_structure("routing_plan", policy=policy, entropies=routing.entropies, gap_ps=gap_ps)


def plan_nics(spec: TrialSpec, fabric: Fabric, seed: int) -> Structure:
    """Return the plan of all hosts' NICs."""
    payload, delays = payload_bytes(spec.topology.mtu_bytes), spec.topology.delays
    return make_structure(
        "nic_plan",
        payload_bytes=payload,
        header_bytes=frame_bytes(payload) - payload,
        control_bytes=CONTROL_BYTES,
        around_bytes=AROUND_BYTES,
        ack_bytes=fabric.ack_bytes,
        burst_packets=fabric.burst_packets,
        pace_jitter=fabric.pace_jitter,
        cnp_delay_ps=round((delays.mark_to_cnp_us + delays.cnp_to_cut_us) * PS_PER_US),
        cnp_jitter_ps=round(delays.cnp_jitter_us * PS_PER_US),
        timeout_ps=round(fabric.timeout_us * PS_PER_US),
        seed=seed,
    )
