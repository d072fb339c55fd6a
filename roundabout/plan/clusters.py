# SPDX-License-Identifier: Apache-2.0
"""Trials of a cluster. A simulation of the trace and scheduler, before the trial, determines the trial's jobs."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from roundabout.core.errors import UsageError
from roundabout.models.cluster import models
from roundabout.models.cluster.cassini import RankingRules, decide_alone, decide_with_cassini
from roundabout.models.cluster.crux import with_crux_priorities
from roundabout.models.cluster.job_queue.fabric import fabric_of
from roundabout.models.cluster.job_queue.requests import draw_jobs
from roundabout.models.cluster.job_queue.rules import RULES
from roundabout.models.cluster.job_queue.simulator import QueueCluster, simulate_queue
from roundabout.models.cluster.paths import with_crux_paths, with_foresight
from roundabout.models.cluster.simulator import Cluster, SchedulerPolicy, simulate_dedicated, simulate_trace
from roundabout.models.cluster.state import JobKnowledge, Request, Scheduler
from roundabout.models.cluster.swap_rule import MigrationRule
from roundabout.models.cluster.timeline import Allocation, Timeline
from roundabout.models.cluster.traces import TraceError, initial_placements, trace_requests
from roundabout.models.fluid.engine import Engine
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.models.schedulers import make_scheduler
from roundabout.spec.cluster import MOVE_S, MOVES_S, Cluster as ClusterSpec, Paths
from roundabout.spec.job import MAX_ITERATIONS, ResolvedJob
from roundabout.spec.job_mix import JobMix
from roundabout.spec.trial_spec import TrialSpec

AT_ONCE_MS = 0.001
"""Milliseconds added to a job's simulated departure, so that an iteration that ends at that instant counts."""

LATEST_S = 1e6
"""The latest accepted arrival, in seconds. Later floats cannot distinguish instants 1e-9 s apart."""


CHOOSE_PATHS: Mapping[Paths, Callable[[SchedulerPolicy, JobKnowledge], SchedulerPolicy]] = {
    "crux": with_crux_paths,
    "foresight": with_foresight,
}


def trace_requests_of(spec: TrialSpec, seed: int) -> tuple[Request, ...]:
    """Return the jobs of a cluster's trace, drawn with `seed`.

    Raises UsageError if the trace is invalid, or if a job arrives too late, runs too long, or can never run.
    """
    assert spec.cluster
    gpus = len(spec.topology.hosts) * spec.topology.gpus_per_host
    if isinstance(spec.cluster.trace, JobMix):
        return draw_jobs(spec.cluster.trace, spec.topology, seed)[0]
    wanted = trace_requests(spec.cluster.trace, gpus, seed, guesses=_guesses(spec, seed), submitted=spec.submitted)
    part = spec.cluster.slice
    for each in wanted:
        where = f"{spec.cluster.trace.kind} trace, job {each.name}"
        if each.arrives_s > LATEST_S and (part is None or each.arrives_s < part.from_s + part.lasts_s):
            message = (
                f"{where}: found an arrival {each.arrives_s:,.0f} s after the first, expected {LATEST_S:,.0f} s at most"
            )
            raise TraceError(
                message, "give the trace a `compression` or fewer `jobs`, or its file only those of some days"
            )
        if each.iterations > MAX_ITERATIONS and part is None:
            message = f"{where}: found {each.iterations:,} iterations, expected {MAX_ITERATIONS:,} at most"
            raise TraceError(message, "give the trace a `compression`, leave longer jobs out, or play a `slice` of it")
    return wanted


def check_cluster_trial(spec: TrialSpec, seed: int) -> None:
    """Raise UsageError if the trace has a job that can never run, or if the scheduler does not exist.

    Raises EngineError if the flow-level engine is not built.
    """
    assert spec.cluster
    if isinstance(spec.cluster.trace, JobMix):
        _check_mix(spec, spec.cluster, spec.cluster.trace)
        return
    _check_routing(spec, spec.cluster)
    Engine(ResidualCapacity.constant({}))
    trace_requests_of(spec, seed)
    _scheduler(spec, _job_knowledge(None))


def _check_mix(spec: TrialSpec, cluster: ClusterSpec, mix: JobMix) -> None:
    """Raise UsageError if a mix has what its queue lacks, or a topology that its queue cannot use."""
    scheduler = cluster.scheduler
    lacks: dict[str, object] = {
        "cassini": cluster.cassini,
        "migrate": cluster.migrate,
        "priorities": cluster.priorities,
    }
    lacks |= {"slice": cluster.slice, "move_s": cluster.move_s, "paths: foresight": cluster.paths == "foresight"}
    lacks |= {f"scheduler {scheduler.name}": scheduler.name != "fifo" or scheduler.options}
    if used := [field for field, value in lacks.items() if value]:
        raise UsageError(
            f"mix trace: found {used[0]}, allowed are scheduler fifo, paths crux, perfect and sglb, and fragments",
            "leave it out, or take a trace of another kind, such as poisson",
        )
    draw_jobs(mix, spec.topology, 0)
    if fabric_of(spec.topology).tiers and cluster.paths == "sglb":
        raise UsageError(
            f"topology {spec.topology.name}: found paths sglb with three tiers, allowed with them are crux and perfect",
            "take a leaf-spine, or leave paths out",
        )


def _check_routing(spec: TrialSpec, cluster: ClusterSpec) -> None:
    """Raise UsageError if decisions need links that the routing hides, or choose paths that it does not have."""
    if cluster.paths in ("perfect", "sglb"):
        raise UsageError(
            f"{cluster.trace.kind} trace: found paths {cluster.paths}, allowed are crux and foresight",
            "leave paths out, or take a mix trace",
        )
    topology = spec.topology
    name = topology.routing.name if topology.routing and not topology.is_tree else "none"
    if cluster.paths and (not topology.hashes_flows or topology.spreads_packets or topology.has_rails):
        raise UsageError(
            f"topology {topology.name}: found routing {name} with paths, allowed with it is ecmp: elsewhere a flow's "
            "source port does not choose among the paths of one NIC",
            "give `routing: {name: ecmp}` and a topology with several paths and one NIC a host, or leave paths out",
        )
    by_links = ("cassini", "migrate") if cluster.paths else ("cassini", "migrate", "priorities")
    used = [field for field in by_links if getattr(cluster, field)]
    if used and topology.hashes_flows:
        raise UsageError(
            f"topology {topology.name}: found routing {name} with {used[0]}, allowed with it is static: "
            "links of later flows are not known before they have their ports",
            f"give `routing: {{name: static}}` and a topology with one NIC a host, or leave {used[0]} out",
        )


def least_duration_s(spec: TrialSpec, seed: int) -> float:
    """Return a lower bound of the duration of a cluster's trial, in seconds.

    The bound is the duration of the trace's window. Without a window, it is the latest end of a job that never waits
    and has the network to itself.
    """
    assert spec.cluster
    if spec.cluster.slice:
        return spec.cluster.slice.lasts_s
    if isinstance(spec.cluster.trace, JobMix):
        return max(each.arrives_s for each in trace_requests_of(spec, seed))
    known = _job_knowledge(_guesses(spec, seed))
    return max(
        each.arrives_s + known.alone_s(each, each.iterations, each.workers) for each in trace_requests_of(spec, seed)
    )


def with_simulated_jobs(spec: TrialSpec, seed: int) -> tuple[TrialSpec, Timeline]:
    """Return a cluster's trial with one job for each simulated allocation, and the timeline of the simulation.

    Allocations without traffic are left out of the trial, and a mix has none. Raises UsageError if the trace, the
    scheduler or its options are invalid, and SchedulingError if the scheduler returns an invalid placement.
    """
    assert spec.cluster
    if isinstance(spec.cluster.trace, JobMix):
        return spec, _simulate_mix(spec, spec.cluster, spec.cluster.trace, seed)
    guesses, wanted = _guesses(spec, seed), trace_requests_of(spec, seed)
    known = _job_knowledge(guesses)
    scheduler = _scheduler(spec, known)
    cluster = Cluster(
        topology=spec.topology,
        scheduler=scheduler,
        known=known,
        decide=_policy(spec, scheduler, known),
        resolve_job=partial(_resolve_job, spec, known, {each.name: each for each in wanted}),
        move_s=_move_s(spec, guesses),
        seed=seed,
        present=initial_placements(spec.cluster.trace, wanted, spec.topology, seed),
    )
    part = spec.cluster.slice
    window = (part.from_s, part.lasts_s) if part else None
    timeline = simulate_dedicated(wanted, cluster) if scheduler.dedicated else simulate_trace(wanted, cluster, window)
    jobs = {
        allocation.name: cluster.resolve_job(allocation)
        for allocation in timeline.allocations
        if allocation.has_traffic
    }
    if not jobs:
        where = f"its window from {part.from_s:g} s on" if part else "it"
        message = f"{spec.cluster.trace.kind} trace: found no job of several workers in {where}, expected one at least"
        raise TraceError(message, "choose another window, or jobs with more workers")
    return spec.model_copy(update={"jobs": jobs}), timeline


def _simulate_mix(spec: TrialSpec, cluster: ClusterSpec, mix: JobMix, seed: int) -> Timeline:
    """Return the timeline of a mix of jobs in a queue, whose slowdowns are the trial's result."""
    requests, shapes = draw_jobs(mix, spec.topology, seed)
    rule = RULES[cluster.paths or "hash"]
    return simulate_queue(requests, shapes, QueueCluster(spec.topology, rule, cluster.fragments, seed))


def _resolve_job(
    spec: TrialSpec, known: JobKnowledge, requests: Mapping[str, Request], allocation: Allocation
) -> ResolvedJob:
    """Return an allocation as a job of a trial, which departs at its end."""
    assert spec.cluster
    return ResolvedJob(
        profile=known.profile(requests[allocation.job], len(allocation.workers)),
        workers=allocation.workers,
        transport=spec.cluster.transport,
        iterations=allocation.left,
        arrives_ms=1e3 * allocation.begins_s,
        departs_ms=None if math.isinf(allocation.ends_s) else 1e3 * allocation.ends_s + AT_ONCE_MS,
        timetable=allocation.timetable,
        gpus=allocation.gpus,
        priority=allocation.priority,
        source_ports=allocation.source_ports,
    )


def _scheduler(spec: TrialSpec, known: JobKnowledge) -> Scheduler:
    assert spec.cluster
    return make_scheduler(spec.cluster.scheduler.name, known, **spec.cluster.scheduler.options)


def _job_knowledge(guesses: models.Guesses) -> JobKnowledge:
    return JobKnowledge(partial(models.make_profile, guesses=guesses), partial(models.noise_examples, guesses=guesses))


def _guesses(spec: TrialSpec, seed: int) -> models.Guesses:
    assert spec.cluster
    return seed if spec.cluster.guesses == "drawn" else None


def _move_s(spec: TrialSpec, guesses: models.Guesses) -> float:
    assert spec.cluster
    if spec.cluster.move_s is not None:
        return spec.cluster.move_s
    return MOVE_S if guesses is None else Random(f"{guesses} move_s").uniform(*MOVES_S)


def _policy(spec: TrialSpec, scheduler: Scheduler, known: JobKnowledge) -> SchedulerPolicy:
    """Return the policy that places the cluster's jobs, and gives them paths and priorities if the cluster has them."""
    assert spec.cluster
    policy = _placement_policy(spec.cluster, scheduler, known)
    if spec.cluster.paths:
        policy = CHOOSE_PATHS[spec.cluster.paths](policy, known)
    return with_crux_priorities(policy, known, spec.priority_queues) if spec.cluster.priorities else policy


def _placement_policy(cluster: ClusterSpec, scheduler: Scheduler, known: JobKnowledge) -> SchedulerPolicy:
    """Return the scheduler's own policy, or Cassini's around it, with the cluster's rule of moves."""
    migration = MigrationRule(cluster.migrate, cluster.fragments)
    if cassini := cluster.cassini:
        rules = RankingRules(cassini.rank, cassini.threshold, migration)
        return lambda state, seed: decide_with_cassini(scheduler, state, seed, known, rules)
    return lambda state, seed: decide_alone(scheduler, state, seed, known, migration)
