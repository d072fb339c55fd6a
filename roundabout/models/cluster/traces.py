# SPDX-License-Identifier: Apache-2.0
"""Jobs over time, from a trace's specification and a seed. Source: the interleaving thesis, section 4.5.1.

Each job has a generator of its own, so that jobs are drawn independently.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count, takewhile
from random import Random
from statistics import fmean

from roundabout.core.errors import UsageError
from roundabout.models.cluster.models import Guesses, expand_sets, find_model, make_profile
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Placements, Request
from roundabout.spec.topology import Topology
from roundabout.spec.trace import (
    Dynamic,
    ListedJob,
    PlayedTrace,
    Poisson,
    RandomJobs,
    RecordedTrace,
    Snapshot,
    SubmittedJob,
)

WHOLE_GROUP = ListedJob()


class TraceError(UsageError):
    """An error for a job that the cluster can never run, and for a trace without jobs."""


@dataclass(frozen=True)
class _Draw:
    """The distributions of a trace's jobs, and their seed."""

    trace: RandomJobs
    models: tuple[str, ...]
    seed: int
    guesses: Guesses

    def generator(self, of: str) -> Random:
        return Random(f"{self.seed} {of}")

    def request(self, number: int, arrives_s: float, given: ListedJob = WHOLE_GROUP) -> Request:
        """Return job `number` of the trace, from 1; values that are not given are drawn."""
        random = self.generator(f"job {number}")
        name = given.model or random.choice(self.models)
        batch = given.batch or self.batch(name, random)
        workers = given.workers or random.randint(self.trace.workers.least, self.trace.workers.most)
        iterations = given.iterations or random.randint(self.trace.iterations.least, self.trace.iterations.most)
        return Request(f"{name.lower()}-{number}", name, batch, workers, iterations, arrives_s)

    def batch(self, model: str, random: Random) -> int:
        """Return the trace's batch of a model. It is drawn in any case, so that a given one changes no other value."""
        drawn = random.randint(*find_model(model).batch)
        return self.trace.batches.get(model, drawn)


def trace_requests(
    trace: PlayedTrace, gpus: int, seed: int, *, guesses: Guesses = None, submitted: Sequence[SubmittedJob] = ()
) -> tuple[Request, ...]:
    """Return the jobs of a trace on a cluster of `gpus` GPUs, in the order of their arrival.

    Args:
        trace: the specification.
        gpus: the number of GPUs in the cluster, of which a load is a fraction.
        seed: seed of all values that the trace does not give; the same seed gives the same jobs.
        guesses: see roundabout.models.cluster.models.
        submitted: the jobs of a real trace (roundabout.spec.trace_readers).

    Raises:
        ModelError: a model is unknown.
        TraceError: a job needs more GPUs than there are, or there are no jobs.
    """
    for model in trace.batches:
        find_model(model)
    draw = _Draw(trace, expand_sets(trace.models), seed, guesses)
    found = tuple(_requests_of_kind(trace, draw, gpus, submitted))
    if not found:
        raise TraceError(f"{trace.kind} trace: found no job, expected one at least", "widen its workers or minutes")
    for request in found:
        if request.workers > gpus:
            raise TraceError(
                f"{trace.kind} trace, job {request.name}: found {request.workers} workers, expected at most {gpus}, "
                "as many as the cluster has GPUs",
                "give `workers` of the trace a smaller `most`, or the topology more hosts",
            )
    return found


def initial_placements(trace: PlayedTrace, requests: Sequence[Request], topology: Topology, seed: int) -> Placements:
    """Return the GPUs that the jobs at the start have before the scheduler is called; none unless the state says so.

    The seed draws them from all GPUs, so that the free GPUs and each job's are spread over the cluster, as arrivals and
    departures leave them. A job that no GPUs are left for waits.
    """
    if not isinstance(trace, Dynamic) or trace.state == "empty":
        return {}
    ground, rng = host_tree_of(topology), Random(f"{seed} placements")
    free = ground.free(())
    return {
        each.name: ground.scatter(free, each.workers, rng)
        for each in requests[: len(trace.present)]
        if each.workers <= free.sum()
    }


def _requests_of_kind(
    trace: PlayedTrace, draw: _Draw, gpus: int, submitted: Sequence[SubmittedJob]
) -> Iterator[Request]:
    match trace:
        case Poisson():
            yield from _poisson(trace, draw, gpus)
        case Dynamic():
            yield from _listed(draw, trace.present, 1, 0.0)
            yield from _listed(draw, trace.arriving, len(trace.present) + 1, trace.arrive_s)
        case Snapshot():
            yield from _listed(draw, trace.jobs, 1, 0.0)
        case _:
            yield from _recorded(trace, draw, submitted)


def _listed(draw: _Draw, jobs: Iterable[ListedJob], first: int, arrives_s: float) -> Iterator[Request]:
    return (draw.request(number, arrives_s, job) for number, job in enumerate(jobs, first))


def _poisson(trace: Poisson, draw: _Draw, gpus: int) -> Iterator[Request]:
    gap_s = gpu_seconds(trace, draw.guesses) / (trace.load * gpus)
    end_s = math.inf if trace.minutes is None else trace.minutes * 60
    random = draw.generator("arrivals")
    gaps_s = (random.expovariate(1 / gap_s) for _ in (range(trace.jobs) if trace.jobs else count()))
    for number, arrives_s in enumerate(takewhile(lambda at_s: at_s <= end_s, accumulate(gaps_s)), 1):
        yield draw.request(number, arrives_s)


def _recorded(trace: RecordedTrace, draw: _Draw, submitted: Sequence[SubmittedJob]) -> Iterator[Request]:
    wanted = [job for job in submitted if trace.workers.least <= job.gpus <= trace.workers.most]
    first = sorted(wanted, key=lambda job: job.at_s)[: trace.jobs]
    for number, job in enumerate(first, 1):
        arrives_s = (job.at_s - first[0].at_s) / trace.compression
        drawn = draw.request(number, arrives_s, ListedJob(workers=job.gpus))
        ran_s = None if job.ran_s is None else job.ran_s / trace.compression
        yield replace(drawn, name=f"{job.name}-{number}", iterations=_iterations(drawn, ran_s, draw.guesses))


def _iterations(request: Request, ran_s: float | None, guesses: Guesses) -> int:
    """Return the iterations that take the job alone as long as it ran; drawn if that is not known."""
    if ran_s is None:
        return request.iterations
    alone_ms = make_profile(request.model, request.workers, request.batch, guesses).alone_ms
    return max(round(ran_s * 1000 / alone_ms), 1)


def gpu_seconds(trace: RandomJobs, guesses: Guesses = None) -> float:
    """Return the mean GPU time of a trace's jobs, each alone, s: workers x iterations x iteration time.

    The middle of the range of drawn batches is used, because an iteration's time is linear in the batch.
    """
    workers = range(trace.workers.least, trace.workers.most + 1)
    means_ms = [
        fmean(
            each * make_profile(name, each, batch, guesses).alone_ms
            for batch in ([trace.batches[name]] if name in trace.batches else find_model(name).batch)
            for each in workers
        )
        for name in expand_sets(trace.models)
    ]
    return fmean(means_ms) * (trace.iterations.least + trace.iterations.most) / 2 / 1000
