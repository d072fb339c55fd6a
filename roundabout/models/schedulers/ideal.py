# SPDX-License-Identifier: Apache-2.0
"""Ideal: "runs each training job on a dedicated cluster" (the interleaving thesis, section 4.5.1)."""

from collections.abc import Sequence

from roundabout.models.cluster.placement import checked
from roundabout.models.cluster.state import Job, Known, Placements, State


def scheduler(known: Known) -> "Ideal":
    """Makes it; what is known of jobs does not matter to it."""
    del known
    return Ideal()


class Ideal:
    """Every job runs at once with all the workers that it asks for, on a cluster that is its own."""

    dedicated = True

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """The one placement, each job's as if no other were there. Raises SchedulingError."""
        del seed
        ground = checked(state)
        return [{job.request.name: ground.pack(ground.free(()), job.request.workers) for job in state.jobs}]

    def lease_s(self, state: State, job: Job) -> None:
        """None: for as long as the job runs."""

    def next_s(self, state: State) -> None:
        """None: nothing changes by itself."""
