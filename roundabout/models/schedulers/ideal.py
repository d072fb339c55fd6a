# SPDX-License-Identifier: Apache-2.0
"""Ideal: "runs each training job on a dedicated cluster" (the interleaving thesis, section 4.5.1)."""

from collections.abc import Sequence

from roundabout.models.cluster.placement import check_cluster
from roundabout.models.cluster.state import Job, JobKnowledge, Placements, State


def scheduler(known: JobKnowledge) -> "Ideal":
    """Return the scheduler, which needs no knowledge of jobs."""
    del known
    return Ideal()


class Ideal:
    """A scheduler that gives every job a cluster of its own, with all requested workers at once."""

    dedicated = True

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return one set of placements, in which each job is placed as without other jobs. Raises SchedulingError."""
        del seed
        ground = check_cluster(state)
        return [{job.request.name: ground.pack(ground.free(()), job.request.workers) for job in state.jobs}]

    def lease_s(self, state: State, job: Job) -> None:
        """Return None, because a placement lasts as long as the job."""

    def next_s(self, state: State) -> None:
        """Return None, because nothing changes by itself."""
