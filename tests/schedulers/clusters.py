# SPDX-License-Identifier: Apache-2.0
"""Clusters, jobs and a quick simulator for tests of schedulers: iterations take as long as locality has it."""

import random
from collections.abc import Mapping
from dataclasses import replace

from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, JobKnowledge, Request, State
from roundabout.models.cluster.timeline import Allocation
from roundabout.spec import Profile, Topology
from roundabout.spec.job import ResolvedJob
from roundabout.spec.profile import Phase, ring_allreduce_bytes
from roundabout.spec.transports import Transport

MODELS = {"vgg": (138_000_000, 160.0), "bert": (110_000_000, 60.0), "resnet": (25_600_000, 120.0)}
"""Parameters, and computing time."""
GBPS = 38.84


def cluster(racks: int, hosts: int, gpus: int = 1) -> Topology:
    """Racks of servers under one core, 2:1 over-subscribed."""
    names = [f"s{place}" for place in range(racks * hosts)]
    links = [
        *({"name": f"L-{name}", "ends": (name, f"t{place // hosts}")} for place, name in enumerate(names)),
        *(
            {
                "name": f"U{rack}",
                "ends": (f"t{rack}", "c"),
                "line_rate_gbps": 25.0 * hosts,
                "payload_rate_gbps": 21.5 * hosts,
            }
            for rack in range(racks)
        ),
    ]
    return Topology.model_validate(
        {
            "name": f"cluster-{racks}x{hosts}",
            "about": "made up",
            "line_rate_gbps": 50.0,
            "payload_rate_gbps": 43.0,
            "queue": "lossless",
            "gpus_per_host": gpus,
            "hosts": names,
            "switches": [*(f"t{rack}" for rack in range(racks)), "c"],
            "links": links,
        }
    )


def with_links_of(topology: Topology, gbps: float) -> Topology:
    """The topology with this payload rate on all links."""
    rates = {"line_rate_gbps": 50.0, "payload_rate_gbps": gbps}
    links = [link.model_dump() | rates for link in topology.links]
    return topology.model_validate(topology.model_dump(by_alias=True) | {"links": links})


def profile(model: str, workers: int, batch: int) -> Profile:
    """A ring that sends at the demand of HotNets' Figure 3, after computing."""
    parameters, compute_ms = MODELS[model]
    phases = [Phase(name="compute", compute_ms=compute_ms * batch / 8, guess="made up")]
    if workers > 1:
        size = ring_allreduce_bytes(parameters, workers)
        phases.append(Phase(name="send", bytes=size, alone_ms=size * 8 / GBPS / 1e6, guess="made up"))
    return Profile(name=f"{model}-{workers}", model=model, batch=batch, phases=tuple(phases))


KNOWN = JobKnowledge(profile, lambda model: 1000.0)


def employed(requests: Mapping[str, Request], allocation: Allocation) -> ResolvedJob:
    """A job's resolved form on the workers of an allocation."""
    return ResolvedJob(
        profile=KNOWN.profile(requests[allocation.job], len(allocation.workers)),
        workers=allocation.workers,
        transport=Transport(name="dcqcn"),
        arrives_ms=1e3 * allocation.begins_s,
        timetable=allocation.timetable,
        gpus=allocation.gpus,
        priority=allocation.priority,
        source_ports=allocation.source_ports,
    )


def trace(seed: int, count: int, every_s: float, most: int = 12) -> list[Request]:
    """Requests that arrive at random, `every_s` on average."""
    rng, at, found = random.Random(seed), 0.0, []
    for place in range(count):
        workers, model = rng.randint(1, most), rng.choice(sorted(MODELS))
        found.append(Request(f"j{place}", model, rng.choice((8, 12, 16)), workers, rng.randint(200, 1000), at))
        at += rng.expovariate(1 / every_s)
    return found


def simulate(scheduler, topology, requests, *, slowdowns=(1.0, 1.0, 1.3), seed=1, seen=None):
    """When each job ended, by name; `seen` gets every state, and what was decided."""
    ground, now, ended = host_tree_of(topology), 0.0, {}
    coming, jobs = list(requests), {}

    def rate(job):
        request, workers = job.request, len(job.placement)
        return 1 / (KNOWN.alone_s(request, 1.0, workers) * slowdowns[ground.locality(job.placement)])

    while coming or jobs:
        running = [job for job in jobs.values() if job.placement]
        at = [now + job.remaining_iterations / rate(job) for job in running]
        at += [job.lease_s for job in running if job.lease_s and job.lease_s > now]
        at += [coming[0].arrives_s] if coming else []
        state = State(now, topology, tuple(jobs.values()))
        until = scheduler.next_s(state)
        then = min([*at, until] if until is not None and jobs else at)
        for name, job in jobs.items():
            if job.placement:
                jobs[name] = replace(
                    job, completed=job.completed + (then - now) * rate(job), ran_s=job.ran_s + then - now
                )
        now = then
        for name in [name for name, job in jobs.items() if job.remaining_iterations < 1e-6]:
            ended[name] = now
            del jobs[name]
        while coming and coming[0].arrives_s <= now:
            request = coming.pop(0)
            jobs[request.name] = Job(request)
        if not jobs:
            continue
        state = State(now, topology, tuple(jobs.values()))
        decided = scheduler.decide(state, seed)
        if seen:
            seen(state, decided)
        for name, job in jobs.items():
            placement = decided[0].get(name, ())
            moved = placement != job.placement
            moves = job.moves + (1 if moved and job.placement else 0)
            put = replace(job, placement=placement, placed_s=now if moved else job.placed_s, moves=moves)
            jobs[name] = replace(put, lease_s=scheduler.lease_s(state, job) if placement else None)
    return ended
