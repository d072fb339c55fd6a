# SPDX-License-Identifier: Apache-2.0
"""Priorities of placed jobs by GPU intensity. Source: Crux, sections 3.2 and 4.2.

A job's GPU intensity is the computation of an iteration over the time of its traffic on its slowest link (equation 2).
On equal GPUs, computing time times workers stands for computation. A priority is the intensity times a correction
factor (equation 3), which is relative to the reference job: the job with most traffic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from random import Random
from statistics import fmean

from roundabout.models.cassini import Circle
from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.crux.compression import Edge, compress_priorities
from roundabout.models.cluster.demands import DemandFinder, JobDemands, peak_gbps
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.simulator import SchedulerPolicy
from roundabout.models.cluster.state import JobKnowledge, State
from roundabout.models.cluster.timetable_fit import ITERATIONS, fluid_job_of, mean_iterations_ms

MIN_GAIN = 0.001
"""Least gain by precedence, as a share of the link's time, that separates jobs.

With a smaller value, rounding decides between jobs that do not disturb each other.
"""

DRAWS = 4
"""Number of times that two jobs are played, each time with other random begins. More would rank equals surer."""


@dataclass(frozen=True)
class CommunicatingJob:
    """A placed job with traffic: the computing time of all its workers, and its demand on its slowest link."""

    name: str
    computing_ms: float
    circle: Circle
    link_gbps: float

    @cached_property
    def sending_ms(self) -> float:
        """Return the time of an iteration's traffic at the slowest link's rate, ms."""
        return sum((arc.end_ms - arc.begin_ms) * arc.gbps for arc in self.circle.arcs) / self.link_gbps

    @property
    def intensity(self) -> float:
        """Return the GPU intensity: computing time of all workers over the time of traffic."""
        return self.computing_ms / self.sending_ms

    @property
    def link_share(self) -> float:
        """Return the share of time that the job's traffic takes of its slowest link if nothing delays the job."""
        return self.sending_ms / self.circle.iteration_ms


def with_crux_priorities(decide: SchedulerPolicy, known: JobKnowledge, levels: int) -> SchedulerPolicy:
    """Return a policy that gives the jobs of another policy's placements priorities from 1 to `levels`."""

    def decide_with_priorities(state: State, seed: int) -> PlacementDecision:
        decided = decide(state, seed)
        jobs = communicating_jobs(decided, state, known)
        priorities = assign_priorities(jobs)
        edges = _contention(priorities, demand_finder(decided, state, known).shared_links(decided.placements))
        intensities = {job.name: job.intensity for job in jobs}
        weights = {edge: intensities[edge[0]] for edge in edges}
        return replace(decided, priorities=compress_priorities(list(priorities), weights, levels))

    return decide_with_priorities


def demand_finder(decided: PlacementDecision, state: State, known: JobKnowledge) -> DemandFinder:
    """Return a finder of the demands of the decision's placements, on the decision's paths."""
    requests = {job.request.name: job.request for job in state.jobs}
    return DemandFinder(host_tree_of(state.topology), requests, known, decided.source_ports)


def communicating_jobs(decided: PlacementDecision, state: State, known: JobKnowledge) -> list[CommunicatingJob]:
    """Return the placed jobs that send over a link, in the order of their arrival."""
    requested, gbps = demand_finder(decided, state, known), host_tree_of(state.topology).capacity_gbps
    found = []
    for request in (job.request for job in state.jobs):
        workers = decided.placements.get(request.name, ())
        on_links = requested.circles_of(request.name, workers) if workers else {}
        if on_links:
            computing_ms = known.profile(request, len(workers)).compute_ms * len(workers)
            each = (CommunicatingJob(request.name, computing_ms, on_links[at], gbps[at]) for at in on_links)
            found.append(max(each, key=lambda job: job.sending_ms))
    return found


def assign_priorities(jobs: Sequence[CommunicatingJob]) -> dict[str, float]:
    """Return the priority of each job, in falling order; earlier jobs come first among equals."""
    if not jobs:
        return {}
    reference = max(jobs, key=lambda job: job.link_share)
    found = {job.name: correction_factor(job, reference) * job.intensity for job in jobs}
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def correction_factor(job: CommunicatingJob, reference: CommunicatingJob) -> float:
    """Return the factor of a job's intensity by which jobs compare as the use of GPUs does.

    Of two jobs on one link, the precedence of the job with the larger product of intensity and gained share of the
    link's time gives the higher use of GPUs (theorem 1). The factor is the job's gain over that of the reference job.
    """
    if job == reference:
        return 1.0
    return _gain(job, reference) / _gain(reference, job)


def _gain(job: CommunicatingJob, other: CommunicatingJob) -> float:
    """Return the share of the link's time that a job gains by precedence over another job on one link."""
    gbps = min(job.link_gbps, other.link_gbps)
    first_ms, _ = _iterations_ms(job.circle, other.circle, gbps)
    _, second_ms = _iterations_ms(other.circle, job.circle, gbps)
    return max(job.sending_ms / first_ms - job.sending_ms / second_ms, MIN_GAIN)


@lru_cache(maxsize=65_536)
def _iterations_ms(first: Circle, second: Circle, gbps: float) -> tuple[float, float]:
    """Return the mean iteration times of two jobs on a link on which the first one has precedence, ms."""
    circles = {"second": replace(second, job="second"), "first": replace(first, job="first")}
    links = ((tuple(circles.values()), gbps),)
    longest_ms = max(first.iteration_ms, second.iteration_ms)

    def play(draw: int) -> dict[str, float]:
        random = Random(draw)
        jobs = {
            name: replace(fluid_job_of(name, links, None, random.uniform(0, longest_ms)), priority=priority)
            for priority, name in enumerate(circles)
        }
        return mean_iterations_ms(links, jobs, ITERATIONS * len(jobs) * longest_ms)

    means = [play(draw) for draw in range(DRAWS)]
    return fmean(each["first"] for each in means), fmean(each["second"] for each in means)


def _contention(order: Mapping[str, float], shared_links: Mapping[JobDemands, float]) -> list[Edge]:
    """Return pairs of jobs, the one of higher priority first, that share a link without room for all its demands.

    `order` has the jobs in falling order of priority, and `shared_links` the payload rates of shared links by demands.
    """
    crowded = [
        {circle.job for circle in demands} for demands, gbps in shared_links.items() if peak_gbps(demands) > gbps
    ]
    return [pair for pair in combinations(order, 2) if any(company.issuperset(pair) for company in crowded)]
