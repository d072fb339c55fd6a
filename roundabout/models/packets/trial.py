# SPDX-License-Identifier: Apache-2.0
"""A trial played packet by packet."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roundabout.models.packets.cross_traffic import NO_LOADS, Loads, PlayedTraffic, add_cross_traffic
from roundabout.models.packets.engine import Engine, Samples, StopCheck, StuckError
from roundabout.models.packets.hardware_defaults import Fabric, payload_bytes
from roundabout.models.packets.jobs import AddedJob, add_jobs
from roundabout.models.packets.link_events import add_link_changes
from roundabout.models.packets.network import (
    BYTES_PER_S_OF_GBPS,
    Ports,
    number_trial_ports,
    plan_nics,
    plan_ports,
    plan_routing,
)
from roundabout.models.packets.shortened_trial import play_until_steady
from roundabout.models.packets.steady_state import Skipped, refusal, repeat_iterations
from roundabout.models.packets.structures import PS_PER_MS, Structure
from roundabout.models.packets.switches import add_switches
from roundabout.spec import TrialSpec
from roundabout.spec.frames import segment_bytes
from roundabout.spec.pfc import find_cycle
from roundabout.spec.topology import Hop

SAMPLE_MS = 10.0
"""The interval of counters of ports, as in every lab."""


PACKETS_A_SEGMENT = 1.5
"""Of TCP: every second segment is acknowledged."""

MIN_LEFT = 0.1
"""Share of links that cross traffic is taken to leave to jobs, at least. It only bounds the time that is foretold."""


def count_packet_hops(spec: TrialSpec) -> float:
    """Return how many data packets all links carry in a trial, at most, if jobs take no longer than alone.

    Cross traffic's acknowledgements count too, while jobs are slowed by what it takes of links.
    """
    packet = payload_bytes(spec.topology.mtu_bytes)
    hops = 0.0
    for name, job in spec.jobs.items():
        iterations = float(spec.iterations_of(name))
        if job.departs_ms is not None:
            iterations = min(iterations, (job.departs_ms - job.begins_ms) / job.profile.alone_ms)
        sizes = (sum(spec.bytes_by_hop(name, phase).values()) for phase in job.profile.phases)
        hops += iterations * sum(sizes) / packet
    return hops + _crossing_packet_hops(spec)


def _crossing_packet_hops(spec: TrialSpec) -> float:
    segment = segment_bytes(spec.topology.mtu_bytes)
    per_s, left = 0.0, 1.0
    for traffic in spec.cross_traffic.values():
        for flow in traffic.flows:
            load_gbps = traffic.load_gbps / len(traffic.receivers)
            links = len(spec.topology.path(*flow))
            per_s += PACKETS_A_SEGMENT * load_gbps * BYTES_PER_S_OF_GBPS / segment * links
            left -= load_gbps / spec.topology.path_payload_gbps(*flow)
    return per_s * expected_s(spec) / max(left, MIN_LEFT)


def expected_s(spec: TrialSpec) -> float:
    """Return how long a trial's jobs take, at most, if nothing delays them, in seconds."""
    lengths = (
        (job.departs_ms or job.begins_ms + spec.iterations_of(name) * job.profile.alone_ms) / 1e3
        for name, job in spec.jobs.items()
    )
    return max(lengths, default=0.0)


@dataclass(frozen=True)
class Deadlock:
    """Links that PFC pauses for good, because each waits for the next one, and the last one for the first."""

    links: tuple[str, ...]
    since_ms: float

    def __str__(self) -> str:
        return f"{', '.join(self.links[:-1])} and {self.links[-1]} pause each other since {self.since_ms:.0f} ms"


@dataclass(frozen=True)
class PlayedTrial:
    """The iterations of jobs (arrays (workers, iterations) of RECORD), and the counters of ports and hosts.

    `pairs` are the queue pairs of jobs by sender, receiver (ranks) and number; `traffic` is the cross traffic by name.
    A `deadlock` ends the trial before its jobs end. Iterations that were `skipped`, by job, repeat earlier ones;
    counters end with those that were played. `lost` has, by link, the data packets that its events took.
    """

    ports: Ports
    iterations: Mapping[str, npt.NDArray[np.void]]
    pairs: Mapping[str, Mapping[tuple[int, int, int], Structure]]
    samples: Samples
    packet_hops: int
    traffic: Mapping[str, PlayedTraffic] = field(default_factory=dict)
    deadlock: Deadlock | None = None
    skipped: Mapping[str, Skipped] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)


def open_trial(
    spec: TrialSpec, seed: int, fabric: Fabric, sample_ms: float = SAMPLE_MS, lead_ms: float = 0.0
) -> tuple[Engine, Ports, dict[str, AddedJob]]:
    """Return an engine with the network and the jobs of a trial, before its start. Raises UnsupportedError.

    Jobs and samples begin after `lead_ms`.
    """
    ports = number_trial_ports(spec)
    nics, plans = plan_nics(spec, fabric, seed), plan_ports(spec, fabric, ports)
    engine = Engine(nics, plans, len(spec.topology.hosts), round(sample_ms * PS_PER_MS), round(lead_ms * PS_PER_MS))
    add_switches(engine, spec, ports)
    if spec.topology.spreads_packets:
        engine.set_routing(plan_routing(spec.topology))
    add_link_changes(engine, spec, ports)
    return engine, ports, add_jobs(engine, spec, ports, seed, fabric.tcp)


def play_trial(  # noqa: PLR0913, PLR0917 - what a trial is, and how it is watched
    spec: TrialSpec,
    seed: int,
    fabric: Fabric,
    sample_ms: float = SAMPLE_MS,
    is_stopped: StopCheck = lambda: False,
    loads: Loads = NO_LOADS,
) -> PlayedTrial:
    """Play a trial until its last job ends, beside the cross traffic of `loads`. The same seed gives the same packets.

    With the trial's `skip_within`, it ends when all jobs are in a steady state.

    Raises UnsupportedError, and EngineError if it is stopped.
    """
    engine, ports, jobs = open_trial(spec, seed, fabric, sample_ms, loads.lead_ms)
    crossing = add_cross_traffic(engine, spec, ports, fabric.tcp, loads)
    if crossing:
        engine.run(round(loads.lead_ms * PS_PER_MS), is_stopped=is_stopped)
    before = {name: engine.traffic_result(each.number).delivered for name, each in crossing.items()}
    deadlock, skipped = None, dict[str, Skipped]()
    try:
        if spec.skip_within is not None and refusal(spec) is None:
            skipped = play_until_steady(engine, spec, jobs, round(sample_ms * PS_PER_MS), is_stopped)
        else:
            engine.run(is_stopped=is_stopped)
    except StuckError:
        deadlock = _find_deadlock(engine, spec, ports, loads.lead_ms)
        if deadlock is None:
            raise
    last_ps = engine.now_ps if deadlock or skipped else engine.last_end_ps
    last_ms = last_ps / PS_PER_MS - loads.lead_ms
    traffic = {name: each.read(loads.lead_ms, before[name], last_ms) for name, each in crossing.items()}
    if not skipped:
        engine.run(last_ps + round(sample_ms * PS_PER_MS), while_jobs=False)
    records = {name: engine.iterations(job.number) for name, job in jobs.items()}
    return PlayedTrial(
        ports,
        records | {name: repeat_iterations(records[name], each) for name, each in skipped.items()},
        {name: {key: engine.pair_result(pair) for key, pair in job.pairs.items()} for name, job in jobs.items()},
        engine.samples(),
        engine.packet_hops,
        traffic,
        deadlock,
        skipped,
        _count_lost(engine, spec, ports),
    )


def _count_lost(engine: Engine, spec: TrialSpec, ports: Ports) -> dict[str, int]:
    """Return how many data packets each link with events has lost, in both directions."""
    lost = dict.fromkeys((event.link for event in spec.events), 0)
    for number, (_, link) in enumerate(ports.directions):
        if link.name in lost:
            lost[link.name] += engine.lost(number)
    return lost


def _find_deadlock(engine: Engine, spec: TrialSpec, ports: Ports, lead_ms: float) -> Deadlock | None:
    """Return the circular wait of paused links on the jobs' routes, or None if there is none."""
    directions = {Hop(link, *ends): number for number, (ends, link) in enumerate(ports.directions)}
    since = {hop: at for hop, number in directions.items() if (at := engine.paused_since_ps(number)) is not None}
    pairs = (pair for job in spec.jobs for pair in spec.turns(job))
    cycle = find_cycle(pair for pair in pairs if since.keys() >= set(pair))
    if not cycle:
        return None
    return Deadlock(tuple(hop.link.name for hop in cycle), max(since[hop] for hop in cycle) / PS_PER_MS - lead_ms)
