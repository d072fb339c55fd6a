# SPDX-License-Identifier: Apache-2.0
"""The jobs of a trial as the engine takes them: queue pairs, phases, messages, and jitter."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from roundabout.models.packets.engine import Engine, Message
from roundabout.models.packets.hardware_defaults import TcpHosts, payload_bytes
from roundabout.models.packets.link_events import add_route_changes
from roundabout.models.packets.network import Ports, UnsupportedError
from roundabout.models.packets.structures import PS_PER_MS, Structure, make_structure
from roundabout.models.packets.tcp import NAMES, connection_plan, tcp_settings
from roundabout.models.packets.transports import (
    WINDOWED,
    Values,
    mltcp_plan,
    reaction_plan,
    transport_values,
    window_plan,
)
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import LATE, Timetable
from roundabout.spec.frames import segment_bytes
from roundabout.spec.job import ResolvedJob
from roundabout.spec.patterns import Transfer, find_feeders, flow_bytes
from roundabout.spec.profile import Phase
from roundabout.spec.routing import Flow

MAX_STRETCHES = 10_000
"""Jitter of so many iterations is drawn; then it begins again."""


class PairPlan(NamedTuple):
    """The parameters of a transport, and the reaction_plan, tcp_plan or window_plan that the engine takes."""

    values: Values
    plan: Structure


@dataclass
class QueuePairs:
    """The queue pairs of one job by sender, receiver (ranks) and number; all phases use the same ones.

    `mltcp_jobs` are the engine's jobs of MLTCP, by what their queue pairs have in common. Over TCP, connections stand
    for queue pairs; `tcp` has the settings that they share. `plans` are those of all jobs, by transport and rate.
    """

    engine: Engine
    ports: Ports
    name: str
    job: ResolvedJob
    priority: int
    mltcp_jobs: dict[str, int]
    tcp: Mapping[str, int]
    plans: dict[tuple[str, float], PairPlan]
    numbers: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def between(self, sender: int, receiver: int, number: int) -> int:
        """Return the engine's number of a queue pair. The first call adds the queue pair."""
        key = (sender, receiver, number)
        if key not in self.numbers:
            self.numbers[key] = self._add(self.job.flow(self.name, *key, self.ports.topology))
        return self.numbers[key]

    def _add(self, flow: Flow) -> int:
        topology, one, other = self.ports.topology, flow.sender, flow.receiver
        hosts = (topology.host_numbers[one], topology.host_numbers[other])
        routes = self.ports.route(flow), self.ports.route(flow.turned)
        values, plan = self._plan(self.ports.send_gbps(one))
        if self.job.transport.name in NAMES:
            pair = self.engine.add_connection(*routes, hosts, plan, self.priority)
        elif self.job.transport.name in WINDOWED:
            pair = self.engine.add_window_flow(*routes, hosts, plan, self.priority)
        else:
            pair = self.engine.add_pair(*routes, hosts, plan, self.priority)
        if one != other:
            add_route_changes(self.engine, self.ports, pair, flow)
        if counted_by := values.get("count_by"):
            common = {"host": one, "cgroup": f"{one} {self.name}", "socket": f"{pair}"}[str(counted_by)]
            if common not in self.mltcp_jobs:
                self.mltcp_jobs[common] = self.engine.add_mltcp_job(mltcp_plan(values, self.job.transport))
            self.engine.join(pair, self.mltcp_jobs[common])
        return pair

    def _plan(self, rate_gbps: float) -> PairPlan:
        """Return the plan of a queue pair or connection. It is made once, because declarations are read from files."""
        transport = self.job.transport
        key = (self._transport_key, rate_gbps)
        if key not in self.plans:
            values = transport_values(transport, rate_gbps)
            if transport.name in NAMES:
                plan = connection_plan(self.tcp, transport, values)
            elif transport.name in WINDOWED:
                plan = window_plan(values, transport)
            else:
                plan = reaction_plan(values)
            self.plans[key] = PairPlan(values, plan)
        return self.plans[key]

    @cached_property
    def _transport_key(self) -> str:
        return self.job.transport.model_dump_json()

    @property
    def packet_bytes(self) -> int:
        """Return the payload of a full packet of the job."""
        mtu_bytes = self.ports.topology.mtu_bytes
        return segment_bytes(mtu_bytes) if self.job.transport.name in NAMES else payload_bytes(mtu_bytes)


@dataclass(frozen=True)
class AddedJob:
    """A job in the engine: its number there, and its queue pairs by sender, receiver and number."""

    number: int
    pairs: Mapping[tuple[int, int, int], int]


def add_jobs(engine: Engine, spec: TrialSpec, ports: Ports, seed: int, hosts: TcpHosts) -> dict[str, AddedJob]:
    """Add all jobs of a trial to an engine, by name. Raises UnsupportedError."""
    mltcp_jobs: dict[str, int] = {}
    plans: dict[tuple[str, float], PairPlan] = {}
    settings = tcp_settings(spec, hosts)
    queues, found = spec.queue_of_priority, {}
    for name, job in spec.jobs.items():
        queue = queues.get(job.priority or 0, 0)
        plan, stretches = _job_plan(job, spec.iterations_of(name)), draw_stretches(spec, name, seed)
        pairs = QueuePairs(engine, ports, name, job, queue, mltcp_jobs, settings, plans)
        found[name] = _add_job(pairs, plan, stretches)
    return found


def _add_job(pairs: QueuePairs, plan: Structure, stretches: list[float]) -> AddedJob:
    engine, job = pairs.engine, pairs.job
    number = engine.add_job(plan, stretches)
    for phase in job.profile.phases:
        if phase.compute_ms is not None:
            engine.add_phase(number, round(phase.compute_ms * PS_PER_MS))
        else:
            assert phase.alone_ms is not None
            engine.add_phase(number, round(phase.alone_ms * PS_PER_MS), phase_messages(job, phase, pairs))
    return AddedJob(number, pairs.numbers)


def draw_stretches(spec: TrialSpec, name: str, seed: int) -> list[float]:
    """Return how many times as long as its profile a job computes in each iteration.

    Drawn once an iteration for all its workers, which wait for each other; the same for the job in every variant.
    """
    job = spec.jobs[name]
    if not job.jitter:
        return [1.0]
    generator = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
    count = min(spec.iterations_of(name), MAX_STRETCHES)
    drawn: list[float] = np.maximum(1 + job.jitter * generator.standard_normal(count), 0).tolist()
    return drawn


def _job_plan(job: ResolvedJob, iterations: int) -> Structure:
    held: Timetable | None = job.held_timetable
    times_ms = {"begins": job.begins_ms}
    if held:
        late_ms = max(LATE * held.period_ms, held.threshold_ms)
        times_ms |= {"shift": held.shift_ms, "period": held.period_ms, "threshold": held.threshold_ms, "late": late_ms}
    times = {f"{name}_ps": round(ms * PS_PER_MS) for name, ms in times_ms.items()}
    departs_ps = -1 if job.departs_ms is None else round(job.departs_ms * PS_PER_MS)
    return make_structure("job_plan", workers=len(job.workers), iterations=iterations, departs_ps=departs_ps, **times)


def phase_messages(job: ResolvedJob, phase: Phase, pairs: QueuePairs) -> list[Message]:
    """Return the messages of a phase: each transfer's bytes, spread evenly over the job's flows."""
    transfers = job.transfers(phase)
    messages = []
    for each, fed in zip(transfers, find_feeders(transfers), strict=True):
        for place, number in enumerate(job.flow_numbers(each)):
            size = flow_bytes(each.bytes, job.flows, place)
            if size == 0:
                found = f"flows: found {job.flows} for {each.bytes} bytes of phase {phase.name}"
                raise UnsupportedError(f"{found}, allowed is one a byte at most", "give the job fewer flows")
            feeders = tuple(feeder * job.flows + place for feeder in fed)
            pair = pairs.between(each.sender, each.receiver, number)
            lead = _lead(each, job.flows, pairs.packet_bytes)
            messages.append(Message(pair, each.sender, each.receiver, size, lead, feeders))
    return messages


def _lead(transfer: Transfer, flows: int, packet: int) -> int:
    """Return a flow's part of a lead: in a ring at least a packet, or no worker could begin."""
    if not transfer.lead_bytes:
        return 0
    return max(-(-transfer.lead_bytes // flows), packet)
