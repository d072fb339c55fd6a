# SPDX-License-Identifier: Apache-2.0
"""What a scheduler sees, and what it answers."""

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
    """A job as a trace has it: a model of models.yaml, and the GPUs that it asks for when it arrives."""

    name: str
    model: str
    batch: int  # of a GPU
    workers: int
    iterations: int
    arrives_s: float


@dataclass(frozen=True)
class Job:
    """A job that has arrived and has not ended, as far as it has got."""

    request: Request
    completed: float = 0.0  # iterations of the request's number of workers; others count by what they process
    placement: Placement = ()  # none while it waits
    placed_s: float | None = None  # since when it is there
    lease_s: float | None = None  # until when
    ran_s: float = 0.0  # in all, on any placement
    moves: int = 0  # how often it was placed anew while it ran

    @property
    def left(self) -> float:
        """Iterations that are still to be done."""
        return max(self.request.iterations - self.completed, 0.0)


@dataclass(frozen=True)
class State:
    """A cluster at an instant."""

    now_s: float
    topology: Topology
    jobs: tuple[Job, ...]  # in the order of their arrival

    @property
    def placements(self) -> Placements:
        """Of the jobs that run."""
        return {job.request.name: job.placement for job in self.jobs if job.placement}


class Known:
    """What schedulers know of jobs before they run, from profiling them alone.

    `profile` gives a model's iteration alone by model, workers and batch of a GPU, `noise_examples` a model's gradient
    noise scale, which Pollux goes by.
    """

    def __init__(self, profile: Callable[[str, int, int], Profile], noise_examples: Callable[[str], float]) -> None:
        self._profile, self.noise_examples = cache(profile), noise_examples
        self._iteration_s = cache(lambda *model: profile(*model).alone_ms / 1e3)

    def profile(self, request: Request, workers: int) -> Profile:
        """One iteration of the job alone with so many workers."""
        return self._profile(request.model, workers, request.batch)

    def alone_s(self, request: Request, iterations: float, workers: int) -> float:
        """How long so many of the request's iterations take with so many workers, which process as many examples."""
        return iterations * request.workers / workers * self._iteration_s(request.model, workers, request.batch)


class Scheduler(Protocol):
    """Decides who runs where. Keeps nothing between calls: the same state and seed give the same answer.

    One is asked when a job arrives or ends, when a lease ends, and at the instants that it names itself. Where it is
    `dedicated`, each job has a cluster of its own, and placements may name the same GPUs.
    """

    dedicated: bool

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Placements of equal standing, the one that it would take itself first; ten at most. Who is left out waits."""
        ...

    def lease_s(self, state: State, job: Job) -> float | None:
        """Until when a job that is placed now has its GPUs; None for as long as nobody moves it."""
        ...

    def next_s(self, state: State) -> float | None:
        """The next instant at which it wants to be asked whatever happens; None for never."""
        ...
