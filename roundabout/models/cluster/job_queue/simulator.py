# SPDX-License-Identifier: Apache-2.0
"""Simulation of a queue of jobs on a leaf-spine or three tiers with the flow-level engine, flow by flow.

Jobs start in order of arrival on whole servers. The first one that does not fit holds up all others. Whenever jobs
start or end, fragments move (if they are bounded) and the switches of all flows are chosen anew. Both take effect from
each job's next phase on, at no cost.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from roundabout.models.cluster.job_queue.fabric import Racks, fabric_of
from roundabout.models.cluster.job_queue.fragments import limit_fragments
from roundabout.models.cluster.job_queue.job_shape import BACKWARD, Ints, JobShape, Step
from roundabout.models.cluster.job_queue.placement import find_servers
from roundabout.models.cluster.job_queue.rules import SpineRule
from roundabout.models.cluster.job_queue.spines import Flows
from roundabout.models.cluster.state import Request
from roundabout.models.cluster.timeline import JobHistory, Timeline
from roundabout.models.fluid.cross_traffic import capacities
from roundabout.models.fluid.engine import Engine
from roundabout.models.fluid.jobs import EQUAL_MS, Barrier, ComputePhase, FluidJob, SendPhase, Stream
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.spec.topology import Topology

SGLB_INTERVAL_MS = 10.0
"""The interval at which SGLB moves flows, of MonkeyTree's simulator; a longer one leaves links unequal for longer."""


@dataclass(frozen=True)
class QueueCluster:
    """The fabric of a simulation, the rule that chooses spines, and the bound of fragments' flows on a leaf, if any.

    In three tiers the bound is of a pod's fragments, too. `placed` has the servers of jobs that start on given ones, by
    their names.
    """

    topology: Topology
    spine_rule: SpineRule
    fragments: int | None
    seed: int
    placed: Mapping[str, Ints] = field(default_factory=dict)


@dataclass
class _RunningJob:
    """A running job: its servers by rank, and the paths of its flows as the engine has them."""

    number: int
    request: Request
    shape: JobShape
    started_s: float
    servers: Ints
    moves: int = 0
    paths: bytes = b""

    @property
    def stages(self) -> Ints:
        """Return the servers of each stage, a row each."""
        return self.servers.reshape(self.shape.kind.stages, -1)

    def workers(self, per_server: int) -> Ints:
        """Return the NIC of each worker, counted over all servers."""
        return (per_server * self.servers[:, None] + np.arange(per_server)).ravel()


def simulate_queue(requests: Sequence[Request], shapes: Sequence[JobShape], cluster: QueueCluster) -> Timeline:
    """Simulate the requests, which have these shapes, and return their histories."""
    queue = _Queue(requests, shapes, cluster)
    queue.run()
    return Timeline(tuple(requests), (), (), tuple(queue.histories[each.name] for each in requests))


@dataclass
class _Queue:
    requests: Sequence[Request]
    shapes: Sequence[JobShape]
    cluster: QueueCluster
    histories: dict[str, JobHistory] = field(default_factory=dict)
    running: dict[str, _RunningJob] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.engine = Engine(ResidualCapacity.constant(capacities(self.cluster.topology)))
        self.fabric = fabric_of(self.cluster.topology)
        self.per_server = self.fabric.nics
        self.rack_of = self.fabric.racks.of_server
        # Without moves, MonkeyTree's program places jobs in three tiers as in a leaf-spine.
        self.placed_by = Racks(self.rack_of) if self.cluster.fragments is None else self.fabric.racks
        self.draws = 0
        if self.cluster.spine_rule.is_dynamic:
            spines = self.fabric.tops
            up = [[(leaf, spine) for spine in spines] for leaf in self.fabric.leaves]
            self.engine.balance(up, max(len(spines) // 2, 1), SGLB_INTERVAL_MS)

    def run(self) -> None:
        """Run until the last job has ended."""
        coming = deque(range(len(self.requests)))
        while coming or self.running:
            next_ms = 1e3 * self.requests[coming[0]].arrives_s if coming else math.inf
            ended = self.engine.run(next_ms)
            for name in ended:
                self._end(self.running.pop(name))
            while coming and 1e3 * self.requests[coming[0]].arrives_s <= self.engine.now_ms:
                self.waiting.append(coming.popleft())
            if self._start_waiting() or ended:
                if self.cluster.fragments is not None:
                    self._move_fragments(self.cluster.fragments)
                self._route()

    def _end(self, job: _RunningJob) -> None:
        dedicated_s = job.shape.alone_ms * job.request.iterations / 1e3
        times_s = job.request.arrives_s, job.started_s, self.engine.now_ms / 1e3, dedicated_s
        self.histories[job.request.name] = JobHistory(job.request.name, *times_s, job.moves)

    def _start_waiting(self) -> bool:
        """Start waiting jobs from the first one on while they fit, and return True if any did."""
        free = np.ones(self.rack_of.size, bool)
        for job in self.running.values():
            free[job.servers] = False
        before = len(self.waiting)
        while self.waiting and (needed := self.shapes[self.waiting[0]].gpus // self.per_server) <= free.sum():
            number = self.waiting.popleft()
            request, now_s = self.requests[number], self.engine.now_ms / 1e3
            servers = self.cluster.placed.get(request.name)
            if servers is None:
                found = find_servers(np.flatnonzero(free), needed, self.placed_by)
                servers = np.sort(found.reshape(self.shapes[number].kind.stages, -1), axis=1).ravel()
            free[servers] = False
            self.running[request.name] = _RunningJob(number, request, self.shapes[number], now_s, servers)
        return len(self.waiting) < before

    def _move_fragments(self, most: int) -> None:
        places = [(job, stage) for job in self.running.values() for stage in range(job.shape.kind.stages)]
        rings = np.array([job.shape.kind.rings for job, _ in places], np.int64)
        groups = [job.stages[stage] for job, stage in places]
        moved = limit_fragments(groups, rings, self.fabric.racks, most)
        for place, servers in moved.items():
            job, stage = places[place]
            job.stages[stage] = servers
            job.moves += 1

    def _route(self) -> None:
        """Choose the switches of all flows, and give the engine the phases of jobs whose flows changed."""
        jobs = sorted(self.running.values(), key=lambda job: -job.shape.intensity_ms)
        if not jobs:
            return
        sizes = [job.shape.are_rings.size for job in jobs]
        nics = np.concatenate([job.workers(self.per_server)[job.shape.flows] for job in jobs], axis=1)
        leaves = self.fabric.leaf_of_nic[nics]
        crosses = np.diff(self.rack_of[nics // self.per_server], axis=0)[0] != 0
        flows = Flows(
            nics=nics[:, crosses],
            leaves=leaves[:, crosses],
            jobs=np.repeat([job.number for job in jobs], sizes)[crosses],
            are_rings=np.concatenate([job.shape.are_rings for job in jobs])[crosses],
            nic_loads=np.concatenate([job.shape.nic_loads for job in jobs])[crosses],
        )
        chosen = self._choose_hops(flows)
        hops = np.full((len(chosen), crosses.size), -1, np.int64)
        hops[:, crosses] = chosen
        bounds = np.cumsum(sizes)[:-1]
        for job, *paths in zip(jobs, np.split(leaves, bounds, axis=1), np.split(hops, bounds, axis=1), strict=True):
            self._play(job, *paths)

    def _choose_hops(self, flows: Flows) -> Ints:
        """Return the spine of each flow as an array (1, flows), or the switches in three tiers as one (3, flows).

        In three tiers MonkeyTree's ECMP hashes a number that each flow has of its own. So do draws, which differ from
        time to time.
        """
        rule, seed, tiers = self.cluster.spine_rule, self.cluster.seed, self.fabric.tiers
        if tiers is None:
            return rule.choose(flows, len(self.fabric.tops), seed)[None, :]
        assert rule.choose_hops
        self.draws += 1
        return rule.choose_hops(flows, tiers, seed + self.draws)

    def _play(self, job: _RunningJob, leaves: Ints, hops: Ints) -> None:
        """Give the engine the job if it is new, or its phases if its flows take other paths than before."""
        paths = leaves.tobytes() + hops.tobytes()
        if paths == job.paths:
            return
        phases = self._phases(job.shape, leaves, hops)
        name, iterations, stages = job.request.name, job.request.iterations, job.shape.kind.stages
        if job.paths:
            self.engine.replace(name, phases)
        else:
            self.engine.add(name, FluidJob(phases, stages, start_ms=self.engine.now_ms, iterations=iterations))
        job.paths = paths

    def _phases(self, shape: JobShape, leaves: Ints, hops: Ints) -> tuple[ComputePhase | SendPhase, ...]:
        """Return a job's phases, whose workers are its stages."""
        known = {id(step): self._phase(shape, step, leaves, hops) for step in shape.steps}
        phases = [known[id(step)] for step in shape.steps]
        stages, backward_ms = shape.kind.stages, BACKWARD * shape.kind.compute_ms
        if stages == 1:
            return tuple(phases)
        # A stage's rings begin as its own backward passes end: one pass after those of the stage behind it.
        phases[0] = ComputePhase(shape.steps[0].alone_ms - (stages - 1) * backward_ms)
        waits = [_send(range(stages - behind), (), backward_ms) for behind in range(1, stages)]
        return (*phases[:3], *waits, *phases[3:], _send(range(stages), (), EQUAL_MS, together=True))

    def _phase(self, shape: JobShape, step: Step, leaves: Ints, hops: Ints) -> ComputePhase | SendPhase:
        """Return a phase with the flows that leave their leaf. Others have their NICs' rate, and so end with it."""
        crossing = step.flows[hops[0, step.flows] >= 0]
        stages = range(shape.kind.stages)
        if not len(step.flows) or (len(stages) == 1 and not crossing.size):
            return ComputePhase(step.alone_ms)
        ends = zip(*leaves[:, crossing].tolist(), hops[:, crossing].T.tolist(), strict=True)
        senders = shape.flows[0, crossing] // (shape.gpus // len(stages))
        streams = [
            Stream(stage, stage, self.fabric.path(*each), step.flow_bytes)
            for stage, each in zip(senders.tolist(), ends, strict=True)
        ]
        return _send(stages, streams, step.alone_ms, together=not shape.are_rings[step.flows[0]])


def _send(stages: range, streams: Sequence[Stream], ms: float, *, together: bool = False) -> SendPhase:
    """Return a phase that takes `ms` at least. Stages leave it as their own streams end, or all `together`."""
    waiting = [Stream(stage, stage, (), 1.0) for stage in stages]
    found = (*waiting, *streams)
    groups = [tuple(stages)] if together else [(stage,) for stage in stages]
    own = [tuple(place for place, stream in enumerate(found) if stream.sender in group) for group in groups]
    return SendPhase(found, ms, tuple(map(Barrier, groups, own)))
