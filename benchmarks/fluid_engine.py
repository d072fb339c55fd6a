# SPDX-License-Identifier: Apache-2.0
"""The fluid engine: a cluster's trace in it and in the plain model, and how its time and memory grow with the cluster.

    python benchmarks/fluid_engine.py [--hosts N,...] [--iterations N] [--plain-iterations N] [--short] [--json]

Clusters are trees, 2:1 over-subscribed at each level, with 16 hosts a ToR and 16 switches below each other one; hosts'
links carry 50 Gbit/s. They have a job for every five hosts, of 2 to 12 workers in a ring: three in four have GPUs next
to each other, of which one in ten is somewhere else; the others' are anywhere. Hosts have two GPUs. Iterations last
150 to 400 ms alone, of which 20 to 50 % is sending at 10 to 45 Gbit/s. Each cluster runs in a process of its own; times
are CPU seconds of one processor, without that for making the cluster, and memory is the process's peak.

The plain model looks at all streams at each event. It is timed on the smallest cluster, for fewer iterations.

For a tenth of the iterations clusters are played once more with MLTCP in every job, and once with cross traffic: of one
in ten of the hosts' links' directions it leaves another part every 5 ms, anything from none to all.
"""

import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import measure_in_process, print_result, read_options
from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS, Direction, FluidJob, ResidualCapacity
from roundabout.models.fluid.cross_traffic import STEP_MS
from roundabout.models.fluid.engine import Engine
from roundabout.models.fluid.jobs import ComputePhase, make_send_phase
from roundabout.models.fluid.mltcp import Factor
from roundabout.spec.patterns import all_transfers
from tests.fluid.oracle.model import iteration_times

BELOW = 16
HOST_GBPS = 50.0
HOSTS_PER_JOB = 5
GPUS = 2
"""Number of GPUs of a host, so that jobs share the host's link."""

CROSSED = 0.1
MAX_HOSTS = 3000
"""Largest number of hosts with MLTCP and beside cross traffic, which cost more."""


class Tree:
    """A tree of hosts and levels of switches up to a single switch; each uplink has half of the rate from below."""

    def __init__(self, hosts: int) -> None:
        self.sizes = [hosts]
        while self.sizes[-1] > 1:
            self.sizes.append(-(-self.sizes[-1] // BELOW))
        self.gbps = [HOST_GBPS * (BELOW / 2) ** level for level in range(len(self.sizes) - 1)]

    def capacity(self) -> dict[Direction, float]:
        """Return the payload rate of each direction of a link, bytes/ms."""
        return {
            edge: gbps * BYTES_PER_MS_OF_GBPS
            for level, gbps in enumerate(self.gbps)
            for place in range(self.sizes[level])
            for edge in (self.up(level, place), self.up(level, place)[::-1])
        }

    def up(self, level: int, place: int) -> Direction:
        """Return the direction from a node to the switch above."""
        return f"{level}.{place}", f"{level + 1}.{place // BELOW}"

    def path(self, sender: int, receiver: int) -> tuple[Direction, ...]:
        """Return the directions on the path from one host to another."""
        ups, downs, level = [], [], 0
        while sender != receiver:
            ups.append(self.up(level, sender))
            downs.append(self.up(level, receiver)[::-1])
            sender, receiver, level = sender // BELOW, receiver // BELOW, level + 1
        return (*ups, *reversed(downs))


def placements(hosts: int, rng: random.Random) -> Iterator[list[int]]:
    """Yield the hosts of each job's workers; each worker has its own GPU."""
    gpus = hosts * GPUS
    free = set(range(gpus))
    for _ in range(hosts // HOSTS_PER_JOB):
        near, first = rng.random() < 0.75, rng.randrange(gpus)
        own = []
        for step in range(rng.randint(2, 12)):
            gpu = first + step if near and rng.random() > 0.1 else rng.randrange(gpus)
            while gpu % gpus not in free:
                gpu += 1
            free.remove(gpu % gpus)
            own.append(gpu % gpus // GPUS)
        yield own


def jobs(tree: Tree, iterations: int, rng: random.Random) -> Iterator[FluidJob]:
    """Yield random jobs on the tree, one for every five hosts."""
    for hosts in placements(tree.sizes[0], rng):
        period_ms, part, gbps = rng.uniform(150, 400), rng.uniform(0.2, 0.5), rng.uniform(10, 45)
        size = int(part * period_ms * gbps * BYTES_PER_MS_OF_GBPS)
        found = all_transfers("ring", size, (tuple(range(len(hosts))),))
        paths = [tree.path(hosts[each.sender], hosts[each.receiver]) for each in found]
        most = max(each.bytes for each in found)
        alone_ms = most / (gbps * BYTES_PER_MS_OF_GBPS)
        yield FluidJob(
            (ComputePhase(period_ms * (1 - part)), make_send_phase(found, paths, alone_ms)),
            len(hosts),
            start_ms=rng.uniform(0, period_ms),
            iterations=iterations,
        )


def residual_capacity(tree: Tree, made: Sequence[FluidJob], rng: random.Random) -> ResidualCapacity:
    """Return the residual capacity beside random cross traffic, for twice the time that jobs take alone."""
    drawn = np.random.default_rng(rng.randrange(2**32))
    steps = int(2 * max(alone_ms(job) * (job.iterations or 0) for job in made) / STEP_MS)
    crossed = {edge for place in range(tree.sizes[0]) for edge in (tree.up(0, place), tree.up(0, place)[::-1])}
    return ResidualCapacity(
        {
            edge: np.append(rate * drawn.uniform(size=steps), rate)
            if edge in crossed and rng.random() < CROSSED
            else np.array([rate])
            for edge, rate in tree.capacity().items()
        },
        STEP_MS,
    )


def alone_ms(job: FluidJob) -> float:
    """Return the time of an iteration alone, ms."""
    return sum(each.ms if isinstance(each, ComputePhase) else each.alone_ms for each in job.phases)


def measure_cluster(hosts: int, iterations: int, kind: str) -> dict[str, Any]:
    """Return CPU seconds and memory of playing a cluster of a kind in this process."""
    tree, rng = Tree(hosts), random.Random(hosts)
    made = list(jobs(tree, iterations, rng))
    if kind == "plain model":
        begin = time.process_time()
        iteration_times([*made], tree.capacity(), iterations)
        return {"hosts": hosts, "jobs": len(made), "iterations": iterations, "s": time.process_time() - begin}
    if kind == "MLTCP":
        made = [replace(job, factor=Factor()) for job in made]
    have = residual_capacity(tree, made, rng) if kind == "cross traffic" else ResidualCapacity.constant(tree.capacity())
    begin = time.process_time()
    engine = Engine(have)
    for place, job in enumerate(made):
        engine.add(str(place), job)
    engine.run_to_end()
    spent = time.process_time() - begin
    done = sum(engine.completed(str(place)) for place in range(len(made)))
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    alone = list(map(alone_ms, made))
    took = [
        float((found[0, :, 2] - found[0, :, 0]).mean()) for found in map(engine.iterations, map(str, range(len(made))))
    ]
    slowed = sum(one > 1.01 * other for one, other in zip(took, alone, strict=True)) / len(made)
    return {
        "kind": kind,
        "hosts": hosts,
        "jobs": len(made),
        "iterations": iterations,
        "s": spent,
        "us_per_iteration": 1e6 * spent / done,
        "slowed": slowed,
        "memory_mb": memory_mb,
    }


def main() -> None:
    """Measure the engine on clusters, and print the figures."""
    short = {"hosts": "50", "iterations": 20, "plain_iterations": 5}
    options = read_options(__doc__, short, hosts="100,300,1000,3000,10000", iterations=1000, plain_iterations=20)
    apart = measure_cluster if options.short else partial(measure_in_process, measure_cluster)
    sizes = [int(each) for each in options.hosts.split(",")]
    found = [apart(each, options.iterations, "fair") for each in sizes]
    for kind in ("MLTCP", "cross traffic"):
        found += [apart(each, options.iterations // 10, kind) for each in sizes if each <= MAX_HOSTS]
    plain, engine = (apart(sizes[0], options.plain_iterations, each) for each in ("plain model", "fair"))
    ratio = plain["s"] / engine["s"]
    lines = [
        f"{each['kind']:13} {each['hosts']:6} hosts {each['jobs']:5} jobs {each['s']:8.2f} s"
        f" {each['us_per_iteration']:7.2f} us each {each['memory_mb']:6.0f} MB  {each['slowed']:.0%} of jobs slowed"
        for each in found
    ]
    lines.append(f"plain model / engine, {sizes[0]} hosts, {options.plain_iterations} iterations: {ratio:.0f}")
    print_result(options, {"clusters": found, "plain": plain, "engine": engine, "ratio": ratio}, lines)


if __name__ == "__main__":
    main()
