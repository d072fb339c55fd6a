# SPDX-License-Identifier: Apache-2.0
"""The state of a cluster, and the interface of schedulers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from roundabout.models.cassini.placement_ranking import MAX_CANDIDATES
from roundabout.spec.profile import Profile
from roundabout.spec.topology import Topology

Placement = tuple[str, ...]
"""The host of each worker, by rank; a host with several workers occurs several times. Each worker has one GPU."""

Placements = Mapping[str, Placement]
"""The placement of each job by name; jobs without a placement wait."""


@dataclass(frozen=True)
class Request:
    """A job of a trace: its model in models.yaml, and the workers that it requests, each with one GPU."""

    name: str
    model: str
    batch: int  # of a GPU
    workers: int
    iterations: int
    arrives_s: float


@dataclass(frozen=True)
class Job:
    """A job that has arrived and not ended, with its progress."""

    request: Request
    completed: float = 0.0  # in iterations with the requested workers; others count by their examples
    placement: Placement = ()  # none while it waits
    placed_s: float | None = None  # when it got this placement
    lease_s: float | None = None  # when the lease ends
    ran_s: float = 0.0  # in total, on any placement
    moves: int = 0  # number of changes of placement while it ran
    resumes_s: float | None = None  # when it runs again, if it stands still after a move

    @property
    def remaining_iterations(self) -> float:
        """Return the number of iterations still to be done."""
        return max(self.request.iterations - self.completed, 0.0)


@dataclass(frozen=True)
class State:
    """The state of a cluster at an instant."""

    now_s: float
    topology: Topology
    jobs: tuple[Job, ...]  # in the order of their arrival
    candidates: int = MAX_CANDIDATES  # largest number of sets of placements that the caller can use

    @property
    def placements(self) -> Placements:
        """Return the placements of running jobs."""
        return {job.request.name: job.placement for job in self.jobs if job.placement}


class JobKnowledge:
    """The knowledge that schedulers have about jobs before they run, from profiling each job alone.

    `profile` returns a model's iteration alone for a model, a number of workers and a batch per GPU. `noise_examples`
    returns a model's gradient noise scale, which Pollux uses.
    """

    def __init__(self, profile: Callable[[str, int, int], Profile], noise_examples: Callable[[str], float]) -> None:
        self._profile, self.noise_examples = cache(profile), noise_examples
        self._iteration_s = cache(lambda *model: profile(*model).alone_ms / 1e3)

    def profile(self, request: Request, workers: int) -> Profile:
        """Return one iteration of the job alone with `workers` workers."""
        return self._profile(request.model, workers, request.batch)

    def alone_s(self, request: Request, iterations: float, workers: int) -> float:
        """Return the time, s, in which `workers` workers alone process the examples of `iterations` as requested."""
        return iterations * request.workers / workers * self._iteration_s(request.model, workers, request.batch)


class Scheduler(Protocol):
    """A policy that decides placements, without a memory: the same state and seed give the same answer.

    The simulator calls `decide` when a job arrives or ends, when a lease ends, and at the instants of `next_s`. With a
    `dedicated` scheduler each job has a cluster of its own, so placements may overlap.
    """

    dedicated: bool

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return at most ten equally good sets of placements, its own choice first. Jobs without a placement wait."""
        ...

    def lease_s(self, state: State, job: Job) -> float | None:
        """Return the end of the lease, s, of a job that is placed now; None if the lease has no end."""
        ...

    def next_s(self, state: State) -> float | None:
        """Return the next instant, s, at which `decide` must be called; None for none."""
        ...
