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
    """Every job runs at once with all the workers that it asks for, on a cluster of its own."""

    dedicated = True

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return the one placement, each job's as without other jobs. Raises SchedulingError."""
        del seed
        ground = check_cluster(state)
        return [{job.request.name: ground.pack(ground.free(()), job.request.workers) for job in state.jobs}]

    def lease_s(self, state: State, job: Job) -> None:
        """Return None, because a placement lasts as long as the job."""

    def next_s(self, state: State) -> None:
        """Return None, because nothing changes by itself."""
