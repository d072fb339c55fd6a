# SPDX-License-Identifier: Apache-2.0
"""Themis: a scheduler that auctions GPUs, for the time of a lease, to the jobs that are farthest from fairness.

Source: Mahajan et al., Themis: Fair and Efficient GPU Cluster Scheduling, NSDI 2020; the interleaving thesis, sections
4.4.2 and 4.5.1. docs/reference/schedulers.md lists the differences from them.
"""

import heapq
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from roundabout.models.cluster.locality import Locality, view_by_locality
from roundabout.models.cluster.placement import HostTree, check_cluster, draw_alternatives, place_jobs, swap_places
from roundabout.models.cluster.state import Job, JobKnowledge, Placements, State

MINUTES = 10.0
"""Default length of an epoch, and of a lease, minutes (the thesis)."""

FAIRNESS = 0.8
"""Share of the jobs with GPUs that do not bid, because they are nearest to fairness: Themis' knob f, with its value."""

SLOWDOWNS = (1.0, 1.0, 1.3)
"""Factors on iteration time within a server, within a rack, and across racks.

They are guesses: jobs do not share links within a rack, and two VGG19 that share a link take 1.29 times as long
(README). The factors decide how many GPUs a job bids for; a larger one keeps jobs within a rack that could use more.
"""


Floats = npt.NDArray[np.float64]

Leftover = Literal["free", "random"]
"""The use of GPUs that no bid wins: they stay free, or random jobs get them (NSDI 2020, section 5.1)."""


def scheduler(
    known: JobKnowledge,
    epoch_min: float = MINUTES,
    lease_min: float = MINUTES,
    leftover: Leftover = "free",
    locality: Locality = "packed",
) -> "Themis":
    """Return the scheduler, with an auction at least every `epoch_min` minutes for leases of `lease_min` minutes.

    `leftover` is the use of GPUs that no bid wins, and `locality` the nearness that placements distinguish.
    """
    return Themis(known, 60 * epoch_min, 60 * lease_min, leftover, locality)


@dataclass(frozen=True)
class Themis:
    """A scheduler that minimizes the largest finish-time fairness of jobs, rho = T_shared / T_independent, by auctions.

    T_independent is the job's time alone on an equal part of the cluster. T_shared is its time since arrival plus the
    remaining time with the GPUs that it bids for.
    """

    known: JobKnowledge
    epoch_s: float
    lasts_s: float
    leftover: Leftover = "free"
    locality: Locality = "packed"
    dedicated = False

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return the auction's placements, and equally fair ones with as many workers of each job, at least as near.

        Raises SchedulingError.
        """
        rng = random.Random(f"{seed} {state.now_s}")
        ground = view_by_locality(check_cluster(state), self.locality, rng)
        won = self._auction(ground, state, rng)
        leased = [job.request.name for job in state.jobs if _is_leased(state, job)]
        first = place_jobs(ground, won, state.placements, leased)
        others = [job for job in first if job not in leased]
        return draw_alternatives(first, partial(swap_places, ground, first, others), seed, state.candidates)

    def lease_s(self, state: State, job: Job) -> float:
        """Return the end of the job's present lease, or of a new one, s."""
        return job.lease_s if job.lease_s and _is_leased(state, job) else state.now_s + self.lasts_s

    def next_s(self, state: State) -> float:
        """Return the begin of the next epoch, s."""
        return (state.now_s // self.epoch_s + 1) * self.epoch_s

    def _auction(self, ground: HostTree, state: State, rng: random.Random) -> dict[str, int]:
        """Return the GPUs of each job after the auction, in the order of placement: those with leases first.

        Jobs without any get one each first, the least fair one before the others. Then the GPUs go, few at a time, to
        the bid that lowers the logarithm of rho most for each of them: the product of all rho gets as small as
        possible, as in Themis' partial allocation. GPUs that are left go to random jobs if `leftover` says so.
        """
        every = {job.request.name: _Bidder(self.known, ground, state, job) for job in state.jobs}
        leased = [job.request.name for job in state.jobs if _is_leased(state, job)]
        has = {name: len(state.placements[name]) for name in leased}
        free = ground.gpus - sum(has.values())
        waiting = sorted((name for name in every if name not in has), key=lambda name: -every[name].fairness)[:free]
        has |= dict.fromkeys(waiting, 1)
        free -= len(waiting)
        leased.sort(key=lambda name: -every[name].rho(has[name]))
        bidders = [*waiting, *leased[: math.ceil((1 - FAIRNESS) * len(leased))]]
        offers = [offer for name in bidders if (offer := every[name].best(has[name], free))]
        heapq.heapify(offers)
        while offers:
            offer = heapq.heappop(offers)
            if offer.more <= free:
                has[offer.job] += offer.more
                free -= offer.more
            if again := every[offer.job].best(has[offer.job], free):
                heapq.heappush(offers, again)
        if self.leftover == "random":
            others = [name for name in leased if name not in bidders]
            for names in (others, bidders):
                wanted = {name: every[name].job.request.workers for name in names}
                free = _hand_out(has, wanted, free, rng)
        return has


def _hand_out(has: dict[str, int], wanted: Mapping[str, int], free: int, rng: random.Random) -> int:
    """Give free GPUs one by one to random jobs that want more than they have, and return the number that is left."""
    while free and (short := [name for name, most in wanted.items() if has[name] < most]):
        has[rng.choice(short)] += 1
        free -= 1
    return free


class _Bid(NamedTuple):
    """A bid for more GPUs, and the change of the logarithm of rho for each of them."""

    loss: float
    job: str
    more: int


class _Bidder:
    """A job's benefit from GPUs."""

    def __init__(self, known: JobKnowledge, ground: HostTree, state: State, job: Job) -> None:
        self.known, self.ground, self.job = known, ground, job
        self.waited_s = state.now_s - job.request.arrives_s
        part = max(ground.gpus // len(state.jobs), 1)
        self.independent_s = self.lasts_s(job.request.iterations, min(part, job.request.workers))

    def lasts_s(self, iterations: float, workers: int) -> float:
        slowdown = SLOWDOWNS[self.ground.best_locality(workers)]
        return slowdown * self.known.alone_s(self.job.request, iterations, workers)

    def rho(self, workers: int) -> float:
        return (self.waited_s + self.lasts_s(self.job.remaining_iterations, workers)) / self.independent_s

    @property
    def fairness(self) -> float:
        """Return rho with all the GPUs that it requests."""
        return self.rho(self.job.request.workers)

    def best(self, has: int, free: int) -> _Bid | None:
        """Return the number of GPUs that lowers rho most for each of them; None if none does."""
        most = min(self.job.request.workers - has, free)
        if most < 1:
            return None
        losses = (self._log_rho[has : has + most] - self._log_rho[has - 1]) / np.arange(1, most + 1)
        best = int(losses.argmin())
        return _Bid(float(losses[best]), self.job.request.name, best + 1) if losses[best] < 0 else None

    @cached_property
    def _log_rho(self) -> Floats:
        """Return the logarithm of rho with each number of workers, from 1."""
        return np.array([math.log(self.rho(count)) for count in range(1, self.job.request.workers + 1)])


def _is_leased(state: State, job: Job) -> bool:
    return bool(job.placement) and job.lease_s is not None and job.lease_s > state.now_s
