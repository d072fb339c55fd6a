# SPDX-License-Identifier: Apache-2.0
"""Plays a trace and a scheduler against the fluid engine: what jobs get done decides what happens next.

A job whose workers change stands still for a while; one that is only given other time-shifts goes on at once. In both
cases the iteration under way is lost. Source: the interleaving thesis, sections 4.4.2 and 4.5.1.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from roundabout.cluster.state import Decided, Job, Placement, Request, Scheduler, State
from roundabout.cluster.timeline import Decision, Life, Stint, Timeline, Why
from roundabout.fluid.cross_traffic import capacities
from roundabout.fluid.engine import Engine
from roundabout.fluid.jobs import fluid_job
from roundabout.spec.cassini import Timetable
from roundabout.spec.experiment import ResolvedJob
from roundabout.spec.topology import Topology

SAME_S = 1e-9

Employ = Callable[[Request, Placement], ResolvedJob]
"""A request's job on some hosts; it begins at once, and its iterations are left to who asks."""

Decide = Callable[[State, int], Decided]


@dataclass(frozen=True)
class Cluster:
    """What a trace is played on. `decide` is the scheduler's own way, or Cassini's around it."""

    topology: Topology
    scheduler: Scheduler
    decide: Decide
    employ: Employ
    move_s: float  # for which a job stands still whose workers change, or that goes on after it waited
    seed: int


def conduct(requests: Sequence[Request], cluster: Cluster, window: tuple[float, float] | None = None) -> Timeline:
    """What becomes of the requests; of a window (from, and for how many seconds) alone where there is one."""
    play = _Play(requests, cluster)
    play.until(math.inf if window is None else sum(window))
    timeline = Timeline(tuple(requests), tuple(play.stints), tuple(play.decisions), tuple(play.lives()))
    return timeline if window is None else timeline.within(*window, play.starts_s)


def dedicated(requests: Sequence[Request], cluster: Cluster) -> Timeline:
    """Each job in a cluster of its own from its arrival on; what runs them has one cluster: one after the other."""
    slots = [host for host in cluster.topology.hosts for _ in range(cluster.topology.gpus_per_host)]
    stints, lives, now_s = [], [], 0.0
    for request in requests:
        workers = tuple(islice(slots, request.workers))
        lasts_s = dedicated_s(request, cluster.employ)
        iterations = request.iterations
        stints.append(
            Stint(f"{request.name}.1", request.name, now_s, now_s + lasts_s, workers, iterations, iterations)
        )
        ended_s = request.arrives_s + lasts_s
        lives.append(Life(request.name, request.arrives_s, request.arrives_s, ended_s, lasts_s, moves=0))
        now_s += lasts_s
    return Timeline(tuple(requests), tuple(stints), (), tuple(lives))


def dedicated_s(request: Request, employ: Employ) -> float:
    """How long a job takes with a network of its own."""
    profile = employ(request, ("",) * request.workers).profile
    return request.iterations * profile.alone_ms / 1e3


@dataclass
class _Course:
    """A job under way. `done` is what earlier stints did, in iterations of the workers that it asked for."""

    request: Request
    done: float = 0.0
    placement: Placement = ()
    placed_s: float | None = None
    lease_s: float | None = None
    ran_s: float = 0.0
    timetable: Timetable | None = None
    begins_s: float = 0.0  # of its stint
    left: int = 0  # of its stint, in iterations of as many workers as it has there
    stints: int = 0
    moves: int = 0
    started_s: float | None = None
    ended_s: float | None = None

    @property
    def stint(self) -> str:
        return f"{self.request.name}.{self.stints}"

    def equal(self, iterations: float) -> float:
        """So many iterations of its stint, in iterations of the workers that it asked for."""
        return iterations * len(self.placement) / self.request.workers


@dataclass
class _Play:
    requests: Sequence[Request]
    cluster: Cluster
    stints: list[Stint] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = Engine(capacities(self.cluster.topology.links))
        self.courses = {each.name: _Course(each) for each in self.requests}
        self.coming = sorted(self.requests, key=lambda each: each.arrives_s)
        self.here: dict[str, _Course] = {}

    @property
    def now_s(self) -> float:
        return self.engine.now_ms / 1e3

    def until(self, until_s: float) -> None:
        """Go on until then, or until nothing happens any more."""
        while (self.coming or self.here) and self.now_s < until_s:
            next_s = min([until_s, *self._instants()])
            running = any(course.placement for course in self.here.values())
            if next_s == math.inf and not running:
                break  # who waits now waits for ever
            ended = self.engine.run(1e3 * next_s)
            if self.now_s >= until_s and not ended:
                break
            why, job = self._happened(ended)
            self._decide(why, job)
        for course in self.here.values():
            self._stop(course)

    def starts_s(self, stint: str) -> list[float]:
        """When the iterations of a stint began."""
        starts: list[float] = (self.engine.iterations(stint)[0, :, 0] / 1e3).tolist()
        return starts

    def lives(self) -> Iterator[Life]:
        for name, each in self.courses.items():
            alone_s = dedicated_s(each.request, self.cluster.employ)
            yield Life(name, each.request.arrives_s, each.started_s, each.ended_s, alone_s, each.moves)

    def _instants(self) -> Iterator[float]:
        """What comes next besides the end of a job."""
        if self.coming:
            yield self.coming[0].arrives_s
        now_s, asked = self.now_s, self.cluster.scheduler.next_s(self._state())
        leases = (course.lease_s for course in self.here.values())
        yield from (at for at in (asked, *leases) if at is not None and at > now_s + SAME_S)

    def _happened(self, ended: Sequence[str]) -> tuple[Why, str | None]:
        """Why the scheduler is asked now, and the job that this is about, the first of several."""
        now_s = self.now_s + SAME_S
        gone = [course for course in self.here.values() if course.placement and course.stint in ended]
        for course in gone:
            self._stop(course)
            course.ended_s = self.now_s
            del self.here[course.request.name]
        come = [request for request in self.coming if request.arrives_s <= now_s]
        self.coming = self.coming[len(come) :]
        self.here |= {request.name: self.courses[request.name] for request in come}
        if gone:
            return "end", gone[0].request.name
        if come:
            return "arrival", come[0].name
        left = [name for name, course in self.here.items() if course.lease_s is not None and course.lease_s <= now_s]
        return ("lease", left[0]) if left else ("epoch", None)

    def _decide(self, why: Why, job: str | None) -> None:
        decided = self.cluster.decide(self._state(), self.cluster.seed)
        self.decisions.append(Decision(self.now_s, why, job, dict(decided.placements), decided.scores))
        changed = [course for course in self.here.values() if self._changes(course, decided)]
        for course in changed:
            self._stop(course)
        for course in changed:
            self._place(course, decided.placements.get(course.request.name, ()), decided.timetables)
        state = self._state()
        for each in state.jobs:
            course = self.here[each.request.name]
            if each.placement and (course.lease_s is None or course.lease_s <= self.now_s + SAME_S):
                course.lease_s = self.cluster.scheduler.lease_s(state, each)

    def _changes(self, course: _Course, decided: Decided) -> bool:
        """Whether a job gets other workers, or another timetable. Whose order alone differs keeps its own."""
        name = course.request.name
        table = decided.timetables.get(name, course.timetable)
        return sorted(decided.placements.get(name, ())) != sorted(course.placement) or table != course.timetable

    def _stop(self, course: _Course) -> None:
        """End a job's stint here."""
        if not course.placement:
            return
        self.engine.stop(course.stint)
        completed = self.engine.completed(course.stint)
        begins_s = min(course.begins_s, self.now_s)
        self.stints.append(
            Stint(
                course.stint,
                course.request.name,
                begins_s,
                self.now_s,
                course.placement,
                course.left,
                completed,
                course.timetable,
            )
        )
        course.done += course.equal(completed)
        course.ran_s += self.now_s - begins_s

    def _place(self, course: _Course, workers: Placement, timetables: Mapping[str, Timetable]) -> None:
        """Let a job go on where it is to be, or wait."""
        name, now_s = course.request.name, self.now_s
        stays = sorted(workers) == sorted(course.placement)
        if not stays:
            course.moves += bool(course.placement and workers)
            course.placement, course.timetable, course.lease_s = workers, None, None
            course.placed_s = now_s if workers else None
            course.begins_s = now_s if course.started_s is None else now_s + self.cluster.move_s
        course.begins_s = max(course.begins_s, now_s)
        course.timetable = timetables.get(name, course.timetable)
        if not workers:
            return
        course.started_s = now_s if course.started_s is None else course.started_s
        course.stints += 1
        course.left = max(math.ceil((course.request.iterations - course.done) / course.equal(1) - SAME_S), 1)
        job = self.cluster.employ(course.request, course.placement)
        job = job.model_copy(update={"arrives_ms": 1e3 * course.begins_s, "timetable": course.timetable})
        self.engine.add(course.stint, fluid_job(job, self.cluster.topology, course.left))

    def _state(self) -> State:
        return State(self.now_s, self.cluster.topology, tuple(self._job(each) for each in self.here.values()))

    def _job(self, course: _Course) -> Job:
        now, ran_s = course.done, course.ran_s
        if course.placement:
            now += course.equal(self.engine.completed(course.stint))
            ran_s += max(self.now_s - course.begins_s, 0.0)
        return Job(course.request, now, course.placement, course.placed_s, course.lease_s, ran_s)
