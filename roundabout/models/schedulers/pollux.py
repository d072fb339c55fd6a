# SPDX-License-Identifier: Apache-2.0
"""Pollux: a scheduler that gives GPUs to the jobs whose goodput (throughput x statistical efficiency) gains most.

Source: Qiao et al., Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning, OSDI 2021.
docs/reference/schedulers.md lists the differences from the paper.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roundabout.models.cluster.locality import Locality, view_by_locality
from roundabout.models.cluster.placement import HostTree, Ints, check_cluster, draw_alternatives
from roundabout.models.cluster.state import Job, JobKnowledge, Placement, Placements, Request, State

INTERVAL_S = 60.0
"""Time between two decisions, s (section 5)."""

RESTART_S = 30.0
"""Time that a moved job loses, s (section 4.2.1)."""

MIN_RUNNING_SHARE = 1e-3
"""Least share of a job's speedup that a move leaves, because a job that has just arrived would have none."""

WAITING = 1e9
"""Cost of a job without GPUs, larger than any sum of inverse speedups of jobs with GPUs."""


def scheduler(known: JobKnowledge, interval_s: float = INTERVAL_S, locality: Locality = "packed") -> "Pollux":
    """Return the scheduler, which decides at least every `interval_s`.

    `locality` is the nearness that placements distinguish; the paper's is `host`.
    """
    return Pollux(known, interval_s, locality)


def goodput(known: JobKnowledge, request: Request, workers: int) -> float:
    """Return the useful examples a second: throughput times the statistical efficiency of a larger batch (equation 6).

    The efficiency is (phi + M0) / (phi + M), with phi the gradient noise scale and M0 the batch of one worker.
    """
    noise, batch = known.noise_examples(request.model), request.batch
    examples_per_s = batch * request.workers / known.alone_s(request, 1.0, workers)
    return examples_per_s * (noise + batch) / (noise + batch * workers)


@dataclass(frozen=True)
class Pollux:
    """A scheduler that maximizes the harmonic mean of all jobs' speedups (FITNESS with p = -1).

    A speedup is a job's goodput over that with an equal part of the cluster, reduced by the cost of a move. Inverse
    speedups add up, so the best numbers of workers are found exactly, job after job. The authors search numbers of
    workers and hosts together by a genetic algorithm. On each host at most one job that spans several hosts runs.
    """

    known: JobKnowledge
    interval_s: float
    locality: Locality = "packed"
    dedicated = False

    def decide(self, state: State, seed: int) -> Sequence[Placements]:
        """Return placements of the best numbers of workers; alternatives move changed jobs. Raises SchedulingError."""
        ground = view_by_locality(check_cluster(state), self.locality, random.Random(f"{seed} {state.now_s}"))
        workers = self._workers(ground, state)
        stay = {job: each for job, each in state.placements.items() if len(each) == workers[job]}
        first = _place_workers(ground, workers, stay, None)
        numbers = {job: len(each) for job, each in first.items()}

        def draw(rng: random.Random) -> Placements | None:
            drawn = _place_workers(ground, numbers, stay, rng)
            return drawn if {job: len(each) for job, each in drawn.items()} == numbers else None

        return draw_alternatives(first, draw, seed, state.candidates)

    def lease_s(self, state: State, job: Job) -> None:
        """Return None, because there are no leases."""

    def next_s(self, state: State) -> float:
        """Return the end of the present interval, s."""
        return (state.now_s // self.interval_s + 1) * self.interval_s

    def _workers(self, ground: HostTree, state: State) -> dict[str, int]:
        """Return the best number of workers of each job, 0 for those that wait."""
        part = max(ground.gpus // max(len(state.jobs), 1), 1)
        least = np.zeros(ground.gpus + 1)  # by GPUs, the least cost of the jobs so far
        chosen = []
        for job in state.jobs:
            options = np.full((job.request.workers + 1, least.size), np.inf)
            for count in range(job.request.workers + 1):
                gpus = _gpus(ground, count)
                if gpus < least.size:
                    options[count, gpus:] = least[: least.size - gpus] + self._cost(state, job, count, part)
            chosen.append(options.argmin(axis=0))
            least = options.min(axis=0)
        left, workers = ground.gpus, {}
        for job, by_gpus in zip(state.jobs[::-1], chosen[::-1], strict=True):
            workers[job.request.name] = int(by_gpus[left])
            left -= _gpus(ground, int(by_gpus[left]))
        return {job.request.name: workers[job.request.name] for job in state.jobs}

    def _cost(self, state: State, job: Job, workers: int, part: int) -> float:
        """Return the inverse of its speedup."""
        if not workers:
            return WAITING
        equal = goodput(self.known, job.request, min(part, job.request.workers))
        cost = equal / goodput(self.known, job.request, workers)
        if not job.placement or len(job.placement) == workers:
            return cost
        age_s = state.now_s - job.request.arrives_s
        return cost / max((age_s - job.moves * RESTART_S) / (age_s + RESTART_S), MIN_RUNNING_SHARE)


def _gpus(ground: HostTree, workers: int) -> int:
    """Return the GPUs that so many workers block: hosts that several of a job share are its own."""
    per_host = ground.gpus_per_host
    return workers if workers <= per_host else -(-workers // per_host) * per_host


def _place_workers(
    ground: HostTree, workers: dict[str, int], stay: Placements, rng: random.Random | None
) -> Placements:
    """Place workers on hosts, the largest job first, or in any order; if hosts do not suffice, fewer."""
    found = dict(stay)
    free, spread = ground.free(stay.values()), ground.gpus_of(())
    for placement in stay.values():
        spread += _spread_hosts(ground, placement)
    left = [job for job in workers if job not in stay]
    for job in rng.sample(left, len(left)) if rng else sorted(left, key=lambda job: -workers[job]):
        if placement := _choose_hosts(ground, free, spread, workers[job], rng):
            found[job] = placement
            spread += _spread_hosts(ground, placement)
    return {job: found[job] for job in workers if job in found}


def _choose_hosts(ground: HostTree, free: Ints, spread: Ints, workers: int, rng: random.Random | None) -> Placement:
    apart = np.where(spread > 0, 0, free)
    if workers > ground.gpus_per_host and apart.sum() > free.max():
        placement = ground.pack(apart, min(workers, int(apart.sum())), rng)
    else:
        placement = ground.pack(free.copy(), min(workers, int(free.max())), rng)
    free -= ground.gpus_of(placement)
    return placement


def _spread_hosts(ground: HostTree, placement: Placement) -> Ints:
    """Return the hosts of a job that uses several."""
    taken = ground.gpus_of(placement)
    return taken if (taken > 0).sum() > 1 else np.zeros_like(taken)
