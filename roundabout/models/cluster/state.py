# SPDX-License-Identifier: Apache-2.0
"""The state that a scheduler sees, and its answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from roundabout.spec.profile import Profile
from roundabout.spec.topology import Topology

Placement = tuple[str, ...]
"""The host of each worker, by rank: a host that is named several times has as many. Each worker has one GPU."""

Placements = Mapping[str, Placement]
"""By job; jobs that are not named wait."""


@dataclass(frozen=True)
class Request:
    """A job of a trace: a model of models.yaml, and the GPUs that it asks for when it arrives."""

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
    completed: float = 0.0  # iterations of the request's number of workers; others count by what they process
    placement: Placement = ()  # none while it waits
    placed_s: float | None = None  # since when it is there
    lease_s: float | None = None  # until when
    ran_s: float = 0.0  # in all, on any placement
    moves: int = 0  # how often it was placed anew while it ran

    @property
    def remaining_iterations(self) -> float:
        """Return the iterations still to be done."""
        return max(self.request.iterations - self.completed, 0.0)


@dataclass(frozen=True)
class State:
    """The state of a cluster at an instant."""

    now_s: float
    topology: Topology
    jobs: tuple[Job, ...]  # in the order of their arrival

    @property
    def placements(self) -> Placements:
        """Return the placements of running jobs."""
        return {job.request.name: job.placement for job in self.jobs if job.placement}


class JobKnowledge:
    """The knowledge of schedulers about jobs before they run, from profiling them alone.

    `profile` gives a model's iteration alone by model, workers and batch of a GPU, `noise_examples` a model's gradient
    noise scale, which Pollux goes by.
    """

    def __init__(self, profile: Callable[[str, int, int], Profile], noise_examples: Callable[[str], float]) -> None:
        self._profile, self.noise_examples = cache(profile), noise_examples
        self._iteration_s = cache(lambda *model: profile(*model).alone_ms / 1e3)

    def profile(self, request: Request, workers: int) -> Profile:
        """Return one iteration of the job alone with `workers` workers."""
        return self._profile(request.model, workers, request.batch)

    def alone_s(self, request: Request, iterations: float, workers: int) -> float:
        """Return the time of `iterations` of the request with `workers` workers, which process as many examples."""
        return iterations * request.workers / workers * self._iteration_s(request.model, workers, request.batch)


class Scheduler(Protocol):
    """Decides placements. Keeps nothing between calls: the same state and seed give the same answer.

    It is called when a job arrives or ends, when a lease ends, and at the instants that it names itself. If it is
    `dedicated`, each job has a cluster of its own, and placements may name the same GPUs.
    """

    dedicated: bool

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return placements of equal rank, its own choice first; at most ten. Jobs without a placement wait."""
        ...

    def lease_s(self, state: State, job: Job) -> float | None:
        """Return the end of the lease of a job that is placed now; None if it has no end."""
        ...

    def next_s(self, state: State) -> float | None:
        """Return the next instant at which it wants to be called; None for never."""
        ...
