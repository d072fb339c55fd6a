# SPDX-License-Identifier: Apache-2.0
"""FIFO: a scheduler that starts jobs in the order of their arrival, each as near together as possible."""

from collections.abc import Sequence

from roundabout.models.cluster.placement import check_cluster
from roundabout.models.cluster.state import Job, JobKnowledge, Placements, State


def scheduler(known: JobKnowledge) -> "Fifo":
    """Return the scheduler, which needs no knowledge of jobs."""
    del known
    return Fifo()


class Fifo:
    """A scheduler whose jobs start in order of arrival with all requested workers packed, and stay to the end.

    A job that does not fit is passed by those that do, as batch systems backfill without information about durations.
    """

    dedicated = False

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return one set of placements. Raises SchedulingError if a job can never fit."""
        del seed
        ground, placements = check_cluster(state), dict(state.placements)
        free = ground.free(placements.values())
        for job in state.jobs:
            if not job.placement and job.request.workers <= free.sum():
                placements[job.request.name] = ground.pack(free, job.request.workers)
        return [placements]

    def lease_s(self, state: State, job: Job) -> None:
        """Return None, because a placement lasts as long as the job."""

    def next_s(self, state: State) -> None:
        """Return None, because nothing changes by itself."""
