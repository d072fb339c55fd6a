# SPDX-License-Identifier: Apache-2.0
"""What a scheduler sees, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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


class Scheduler(Protocol):
    """Decides who runs where. Keeps nothing between calls: the same state and seed give the same answer.

    One is asked when a job arrives or ends, when a lease ends, and at the instants that it names itself.
    """

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Placements of equal standing, the one that it would take itself first; ten at most. Who is left out waits."""
        ...

    def lease_s(self, state: State, job: Job) -> float | None:
        """Until when a job that is placed now has its GPUs; None for as long as nobody moves it."""
        ...

    def next_s(self, state: State) -> float | None:
        """The next instant at which it wants to be asked whatever happens; None for never."""
        ...
