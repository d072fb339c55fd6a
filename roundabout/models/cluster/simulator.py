# SPDX-License-Identifier: Apache-2.0
"""Simulation of a trace under a scheduler with the flow-level engine, in which jobs' progress determines events.

A job whose workers change pauses for a while. A job that only gets another time-shift, priority or path continues at
once. In both cases the current iteration is lost. Source: the interleaving thesis, sections 4.4.2 and 4.5.1.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, JobKnowledge, Placement, Placements, Request, Scheduler, State
from roundabout.models.cluster.timeline import Allocation, Decision, JobHistory, Timeline, Why
from roundabout.models.fluid.cross_traffic import capacities
from roundabout.models.fluid.engine import Engine
from roundabout.models.fluid.jobs import fluid_job
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.spec.job import ResolvedJob
from roundabout.spec.topology import Topology

SAME = SAME_S = 1e-9

JobForAllocation = Callable[[Allocation], ResolvedJob]
"""Returns the job of a trial that plays an allocation."""

SchedulerPolicy = Callable[[State, int], PlacementDecision]


@dataclass(frozen=True)
class Cluster:
    """The cluster of a simulation. `decide` is the scheduler's own policy, or Cassini's policy around the scheduler."""

    topology: Topology
    scheduler: Scheduler
    known: JobKnowledge
    decide: SchedulerPolicy
    resolve_job: JobForAllocation
    move_s: float  # pause of a job whose workers change, or that resumes after it waited
    seed: int
    present: Placements = field(default_factory=dict)  # of jobs that run before the first decision of the scheduler


def simulate_trace(
    requests: Sequence[Request], cluster: Cluster, window: tuple[float, float] | None = None
) -> Timeline:
    """Simulate the requests, and return their timeline; with a window (begin and length, s) only its allocations."""
    play = _Simulation(requests, cluster)
    play.advance(math.inf if window is None else sum(window))
    timeline = Timeline(tuple(requests), tuple(play.allocations), tuple(play.decisions), tuple(play.histories()))
    return timeline if window is None else timeline.window(*window, play.iteration_starts_s)


def simulate_dedicated(requests: Sequence[Request], cluster: Cluster) -> Timeline:
    """Return the timeline of jobs that each have a cluster of their own, played one after the other."""
    allocations, histories, now_s = [], [], 0.0
    for each in requests:
        state = State(0.0, cluster.topology, (Job(each),))
        workers = cluster.scheduler.decide(state, cluster.seed)[0][each.name]
        lasts_s = cluster.known.alone_s(each, each.iterations, each.workers)
        allocation = f"{each.name}.1", each.name, now_s, now_s + lasts_s, workers
        allocations.append(Allocation(*allocation, left=each.iterations, iterations=each.iterations))
        histories.append(
            JobHistory(each.name, each.arrives_s, each.arrives_s, each.arrives_s + lasts_s, lasts_s, moves=0)
        )
        now_s += lasts_s
    return Timeline(tuple(requests), tuple(allocations), (), tuple(histories))


@dataclass
class _JobState:
    """A running job. `done` is the work of earlier allocations, in iterations of the requested workers."""

    request: Request
    allocation: Allocation | None = None  # none while it waits; it ends when it does
    done: float = 0.0
    ran_s: float = 0.0
    placed_s: float | None = None
    lease_s: float | None = None
    allocations: int = 0
    moves: int = 0
    started_s: float | None = None
    ended_s: float | None = None

    @property
    def placement(self) -> Placement:
        return self.allocation.workers if self.allocation else ()

    def equivalent_iterations(self, iterations: float, workers: int) -> float:
        """Convert iterations of some workers to iterations of the requested workers."""
        return iterations * workers / self.request.workers


@dataclass
class _Simulation:
    requests: Sequence[Request]
    cluster: Cluster
    allocations: list[Allocation] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = Engine(ResidualCapacity.constant(capacities(self.cluster.topology)))
        self.job_states = {each.name: _JobState(each) for each in self.requests}
        self.coming = sorted(self.requests, key=lambda each: each.arrives_s)
        self.here: dict[str, _JobState] = {}

    @property
    def now_s(self) -> float:
        return self.engine.now_ms / 1e3

    def advance(self, until_s: float) -> None:
        """Advance to that instant, or until no event is left."""
        while self.coming or self.here:
            next_s = min([until_s, *self._next_instants()])
            if next_s == math.inf and not any(job_state.allocation for job_state in self.here.values()):
                break  # jobs that wait now would wait forever
            ended = self.engine.run(1e3 * next_s)
            if not ended and self.now_s >= until_s - SAME_S:
                break
            self._decide(*self._event_at(ended))
        for job_state in self.here.values():
            self._stop(job_state)

    def iteration_starts_s(self, allocation: str) -> list[float]:
        """Return the instants at which the iterations of an allocation began."""
        starts: list[float] = (self.engine.iterations(allocation)[0, :, 0] / 1e3).tolist()
        return starts

    def histories(self) -> Iterator[JobHistory]:
        for name, each in self.job_states.items():
            alone_s = self.cluster.known.alone_s(each.request, each.request.iterations, each.request.workers)
            yield JobHistory(name, each.request.arrives_s, each.started_s, each.ended_s, alone_s, each.moves)

    def _next_instants(self) -> Iterator[float]:
        """Yield the next instants besides the end of a job."""
        if self.coming:
            yield self.coming[0].arrives_s
        scheduled_s = self.cluster.scheduler.next_s(self._state())
        for at_s in (scheduled_s, *(job_state.lease_s for job_state in self.here.values())):
            if at_s is not None and at_s > self.now_s + SAME_S:
                yield at_s

    def _event_at(self, ended: Sequence[str]) -> tuple[Why, str | None]:
        """Return the reason to call the scheduler now, and the job that it is about, the first of several."""
        now_s = self.now_s + SAME_S
        gone = [
            name for name, job_state in self.here.items() if job_state.allocation and job_state.allocation.name in ended
        ]
        for name in gone:
            job_state = self.here.pop(name)
            self._stop(job_state)
            job_state.ended_s = self.now_s
        come = [request.name for request in self.coming if request.arrives_s <= now_s]
        self.coming = self.coming[len(come) :]
        self.here |= {name: self.job_states[name] for name in come}
        running = [name for name in come if name in self.cluster.present]
        if running:
            self._move_jobs(PlacementDecision({name: self.cluster.present[name] for name in running}, {}, ()))
            self._grant_leases(running)
        left = [
            name
            for name, job_state in self.here.items()
            if job_state.lease_s is not None and job_state.lease_s <= now_s
        ]
        happened: dict[Why, list[str]] = {"end": gone, "arrival": come, "lease": left}
        return next(((why, names[0]) for why, names in happened.items() if names), ("epoch", None))

    def _decide(self, why: Why, job: str | None) -> None:
        decided = self.cluster.decide(self._state(), self.cluster.seed)
        scores = tuple(score for score in decided.scores if score is not None)
        self.decisions.append(
            Decision(self.now_s, why, job, dict(decided.placements), scores or None, decided.migrated)
        )
        leases_s = {
            name: self.here[name].lease_s
            for name in decided.migrated
            if len(decided.placements.get(name, ())) == len(self.here[name].placement)
        }
        self._move_jobs(replace(decided, placements={name: decided.placements.get(name, ()) for name in self.here}))
        for name, lease_s in leases_s.items():
            self.here[name].lease_s = lease_s
        self._grant_leases(self.here)

    def _grant_leases(self, names: Collection[str]) -> None:
        """Request a lease for each of these jobs that is placed and has none, or whose lease ended."""
        state = self._state()
        placed = [each for each in state.jobs if each.placement and each.request.name in names]
        for each in placed:
            if each.lease_s is None or each.lease_s <= self.now_s + SAME_S:
                self.here[each.request.name].lease_s = self.cluster.scheduler.lease_s(state, each)

    def _move_jobs(self, decided: PlacementDecision) -> None:
        """Move the jobs to the decision's placements, or let them wait. All leave their GPUs before one gets others.

        A change of the order of a job's workers alone has no effect.
        """
        job_states = {name: self.here[name] for name in decided.placements}
        before = {
            name: self._stop(job_state)
            for name, job_state in job_states.items()
            if job_state.allocation and self._is_changed(job_state.allocation, decided)
        }
        for name, job_state in job_states.items():
            if not job_state.allocation and decided.placements[name]:
                self._start(job_state, before.get(name), decided)

    def _number_gpus(self, workers: Placement) -> tuple[int, ...]:
        """Return the number of a free GPU in its host for each worker, where a number stands for a NIC."""
        if not self.cluster.topology.has_rails:
            return ()
        taken: defaultdict[str, set[int]] = defaultdict(set)
        for allocation in (job_state.allocation for job_state in self.here.values() if job_state.allocation):
            for host, gpu in zip(allocation.workers, allocation.gpus, strict=True):
                taken[host].add(gpu)
        return host_tree_of(self.cluster.topology).number_gpus(workers, taken)

    def _start(self, job_state: _JobState, before: Allocation | None, decided: PlacementDecision) -> None:
        """Start a job as decided; `before` is the allocation that it had until now, if any."""
        name = job_state.request.name
        workers = decided.placements[name]
        if before is not None and sorted(before.workers) == sorted(workers):
            workers, begins_s, gpus = before.workers, max(before.begins_s, self.now_s), before.gpus
        else:
            gpus = self._number_gpus(workers)
            begins_s = self.now_s if job_state.started_s is None else self.now_s + self.cluster.move_s
            job_state.moves += before is not None
            job_state.placed_s, job_state.lease_s = self.now_s, None
        job_state.started_s = self.now_s if job_state.started_s is None else job_state.started_s
        job_state.allocations += 1
        todo = (job_state.request.iterations - job_state.done) / job_state.equivalent_iterations(1, len(workers))
        job_state.allocation = Allocation(
            name=f"{name}.{job_state.allocations}",
            job=name,
            begins_s=begins_s,
            ends_s=math.inf,
            workers=workers,
            left=max(math.ceil(todo - SAME), 1),
            iterations=0,
            timetable=decided.timetables.get(name),
            gpus=gpus,
            priority=decided.priorities.get(name),
            source_ports=decided.source_ports.get(name, ()),
        )
        allocation = job_state.allocation
        job = fluid_job(
            allocation.name,
            self.cluster.resolve_job(allocation),
            self.cluster.topology,
            allocation.left,
            allocation.priority or 0,
        )
        self.engine.add(job_state.allocation.name, replace(job, start_ms=max(job.start_ms, self.engine.now_ms)))

    @staticmethod
    def _is_changed(allocation: Allocation, decided: PlacementDecision) -> bool:
        job = allocation.job
        terms = decided.timetables.get(job), decided.priorities.get(job), decided.source_ports.get(job, ())
        is_moved = sorted(allocation.workers) != sorted(decided.placements[job])
        return is_moved or terms != (allocation.timetable, allocation.priority, allocation.source_ports)

    def _stop(self, job_state: _JobState) -> Allocation | None:
        """End a job's allocation, if it has one."""
        if job_state.allocation is None:
            return None
        allocation, now_s = job_state.allocation, self.now_s
        self.engine.stop(allocation.name)
        completed, begins_s = self.engine.completed(allocation.name), min(allocation.begins_s, now_s)
        if now_s > begins_s:
            self.allocations.append(replace(allocation, begins_s=begins_s, ends_s=now_s, iterations=completed))
        job_state.done += job_state.equivalent_iterations(completed, len(allocation.workers))
        job_state.ran_s += now_s - begins_s
        job_state.allocation = None
        return allocation

    def _state(self) -> State:
        return State(self.now_s, self.cluster.topology, tuple(self._job(each) for each in self.here.values()))

    def _job(self, job_state: _JobState) -> Job:
        done, ran_s, allocation, resumes_s = job_state.done, job_state.ran_s, job_state.allocation, None
        if allocation:
            resumes_s = allocation.begins_s if allocation.begins_s > self.now_s + SAME_S else None
            done += job_state.equivalent_iterations(self.engine.completed(allocation.name), len(allocation.workers))
            ran_s += max(self.now_s - allocation.begins_s, 0.0)
        return Job(
            job_state.request,
            done,
            job_state.placement,
            job_state.placed_s,
            job_state.lease_s,
            ran_s,
            job_state.moves,
            resumes_s,
        )
