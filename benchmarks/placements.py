# SPDX-License-Identifier: Apache-2.0
"""Placing a cluster's jobs with Cassini: candidates drawn and scored a second, and how that grows with hosts.

    python benchmarks/placements.py [--hosts N,...] [--repeats N] [--short] [--json]

Racks of four under one core, 4:1 over-subscribed, are half full with jobs of 2 to 12 workers of Table 4.2's models,
which stay; jobs for the other half arrive at once. Themis draws ten candidates, each is scored, one is taken, and its
jobs are shifted, in CPU seconds of one processor, with nothing remembered from before. The peer, in the same run, tries
every free GPU for each worker and takes the one with the shortest ways to those before it: packing without rooms. It
places once, and scores nothing.
"""

import os
import random
import sys
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, quickest, read_options
from roundabout.models.cluster import cassini, models
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, JobKnowledge, Request, State
from roundabout.models.schedulers import make_scheduler
from roundabout.spec import Topology

HOSTS = "100,300,1000,3000"
RACK = 4
REPEATS = 3


def topology(hosts: int) -> Topology:
    """Return racks of hosts below one core switch."""
    names = [f"s{place}" for place in range(hosts)]
    racks = range(-(-hosts // RACK))
    up = {"line_rate_gbps": 12.5 * RACK, "payload_rate_gbps": 10.75 * RACK}
    links = [{"name": name, "ends": (name, f"t{place // RACK}")} for place, name in enumerate(names)]
    links += [{"name": f"t{rack}", "ends": (f"t{rack}", "core"), **up} for rack in racks]
    rates = {"line_rate_gbps": 50.0, "payload_rate_gbps": 43.0}
    switches = [*(f"t{rack}" for rack in racks), "core"]
    fields = {"name": "racks", "about": "-", "queue": "lossless", "hosts": names, "switches": switches, "links": links}
    return Topology.model_validate({**fields, **rates})


def half_full_state(ground: Topology) -> State:
    """Return a state in which jobs with continuing leases use half of the GPUs.

    Other jobs wait for the other half.
    """
    rng, jobs, left = random.Random(1), list[Job](), len(ground.hosts)
    rooms = host_tree_of(ground)
    free = rooms.free(())
    while left >= 12:
        model, workers = rng.choice(models.expand_sets(("mixed",))), rng.randint(2, 12)
        request = Request(f"j{len(jobs)}", model, models.find_model(model).batch[0], workers, 500, 0.0)
        runs = left > len(ground.hosts) / 2
        placement = rooms.pack(free, workers, rng) if runs else ()
        jobs.append(Job(request, 0.0, placement, 0.0, 600.0) if runs else Job(request))
        left -= workers
    return State(60.0, ground, tuple(jobs))


def pack_greedily(state: State) -> None:
    """Place the waiting jobs greedily: each worker takes the free GPU with the fewest links to earlier workers."""
    ground = host_tree_of(state.topology)
    free = set(ground.hosts) - {host for job in state.jobs for host in job.placement}
    for job in state.jobs:
        chosen: list[str] = []
        for _ in range(0 if job.placement else job.request.workers):
            near = min(free, key=lambda host: sum(len(list(ground.links_between(host, other))) for other in chosen))
            free.remove(near)
            chosen.append(near)


def measure_hosts(hosts: int, repeats: int) -> dict[str, float]:
    """Return the numbers of jobs and candidates, the CPU seconds of a decision, and the peer's relative cost."""
    state, known = half_full_state(topology(hosts)), JobKnowledge(models.make_profile, models.noise_examples)
    themis = make_scheduler("themis", known)
    decided = cassini.decide_with_cassini(themis, state, 1, known)  # loads what is loaded once
    work = partial(cassini.decide_with_cassini, themis, state, 1, known)
    ours_s, _ = quickest(repeats, work, cassini.clear_caches)
    peer_s, _ = quickest(1, partial(pack_greedily, state))
    return {
        "jobs": len(state.jobs),
        "candidates": len(decided.scores),
        "loops": sum(score is None for score in decided.scores),
        "shifted": len(decided.timetables),
        "decide_s": ours_s,
        "scored_per_s": len(decided.scores) / ours_s,
        "peer_over_a_candidate": peer_s * len(decided.scores) / ours_s,
    }


def main() -> None:
    """Measure placing on clusters, and print the figures."""
    options = read_options(__doc__, {"hosts": "48", "repeats": 1}, hosts=HOSTS, repeats=REPEATS)
    found = {hosts: measure_hosts(hosts, options.repeats) for hosts in map(int, options.hosts.split(","))}
    lines = (
        f"{hosts:5} hosts  " + "   ".join(f"{name} {value:.4g}" for name, value in each.items())
        for hosts, each in found.items()
    )
    print_result(options, found, lines)


if __name__ == "__main__":
    main()
