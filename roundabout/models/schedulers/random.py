# SPDX-License-Identifier: Apache-2.0
"""Random: a scheduler that places workers anywhere, "the highest network overhead" (interleaving thesis, 4.5.1)."""

import random
from collections.abc import Sequence
from functools import partial

from roundabout.models.cluster.placement import HostTree, check_cluster, draw_alternatives
from roundabout.models.cluster.state import Job, JobKnowledge, Placements, State


def scheduler(known: JobKnowledge) -> "Random":
    """Return the scheduler, which needs no knowledge of jobs."""
    del known
    return Random()


class Random:
    """A scheduler whose jobs start in order of arrival with all requested workers on random GPUs, and stay to the end.

    The thesis does not say what happens to a job that does not fit. It is a guess that smaller jobs overtake it until
    it fits.
    """

    dedicated = False

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return at most ten random sets of placements. Raises SchedulingError if a job can never fit."""
        draw = partial(_draw_placements, check_cluster(state), state)
        return draw_alternatives(draw(random.Random(seed)), draw, seed + 1, state.candidates)

    def lease_s(self, state: State, job: Job) -> None:
        """Return None, because a placement lasts as long as the job."""

    def next_s(self, state: State) -> None:
        """Return None, because nothing changes by itself."""


def _draw_placements(ground: HostTree, state: State, rng: random.Random) -> Placements:
    placements = dict(state.placements)
    free = ground.free(placements.values())
    for job in state.jobs:
        if not job.placement and job.request.workers <= free.sum():
            placements[job.request.name] = ground.scatter(free, job.request.workers, rng)
    return placements
