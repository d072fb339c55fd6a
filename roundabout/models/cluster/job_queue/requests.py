# SPDX-License-Identifier: Apache-2.0
"""The jobs of a mix over time, from its specification and a seed."""

import math
from itertools import accumulate
from random import Random
from statistics import fmean

from roundabout.core.errors import UsageError
from roundabout.models.cluster.job_queue.fabric import fabric_of
from roundabout.models.cluster.job_queue.job_shape import JobShape, shape_of
from roundabout.models.cluster.state import Request
from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS
from roundabout.spec.job_mix import JobMix, JobType
from roundabout.spec.topology import Topology


def draw_jobs(mix: JobMix, topology: Topology, seed: int) -> tuple[tuple[Request, ...], tuple[JobShape, ...]]:
    """Return a mix's jobs in the order of their arrival, and their shapes on a fabric's hosts.

    Raises:
        UsageError: the topology is another fabric, or a type has numbers of GPUs that it cannot use.
    """
    bytes_per_ms = _nic_gbps(topology) * BYTES_PER_MS_OF_GBPS
    gpus = len(topology.hosts) * topology.gpus_per_host
    for name, kind in mix.types.items():
        _check_type(name, kind, topology.gpus_per_host, gpus)
    random, names = Random(f"{seed} mix"), list(mix.types)
    weights = [mix.types[name].weight for name in names]
    gap_s = _gpu_seconds(mix, bytes_per_ms) / (mix.load * gpus)
    arrivals_s = accumulate((random.expovariate(1 / gap_s) for _ in range(mix.jobs - 1)), initial=0.0)
    requests, shapes = [], []
    for number, arrives_s in enumerate(list(arrivals_s), 1):
        name = random.choices(names, weights)[0]
        workers = random.choice(mix.types[name].gpus)
        iterations = random.randint(*mix.iterations)
        requests.append(Request(f"{name}-{number}", name, 1, workers, iterations, arrives_s))
        shapes.append(shape_of(mix.types[name], workers, bytes_per_ms))
    return tuple(requests), tuple(shapes)


def _gpu_seconds(mix: JobMix, bytes_per_ms: float) -> float:
    """Return the mean GPU time of a job alone, without bubbles of pipelines, s."""
    means = [
        kind.weight * fmean(each * shape_of(kind, each, bytes_per_ms).full_ms for each in kind.gpus)
        for kind in mix.types.values()
    ]
    return math.fsum(means) / math.fsum(kind.weight for kind in mix.types.values()) * fmean(mix.iterations) / 1e3


def _nic_gbps(topology: Topology) -> float:
    """Return the payload rate of a GPU's NIC: its part of the host's links. Raises UsageError for another fabric."""
    fabric = fabric_of(topology)
    hosts = set(topology.hosts)
    below = [link for link in topology.links if hosts & set(link.ends)]
    per_host, rest = divmod(len(below), len(hosts))
    nics = {link.payload_rate_gbps * per_host / topology.gpus_per_host for link in below}
    nic_gbps, leaf_gbps = max(nics), max(nics) * topology.gpus_per_host * len(hosts) / len(fabric.leaves)
    ups = {link.payload_rate_gbps for link in topology.links if not hosts & set(link.ends)}
    if len(nics) > 1 or rest or any(each != nic_gbps and (fabric.aggs or each < leaf_gbps) for each in ups):
        raise UsageError(
            f"topology {topology.name}: found other rates, allowed with a mix trace are hosts of one rate, and links "
            "between switches as fast as a GPU's part of its host's link, or in a leaf-spine as all NICs of a leaf",
            "take a topology like leaf-spine-1024",
        )
    return nic_gbps


def _check_type(name: str, kind: JobType, per_host: int, gpus: int) -> None:
    """Raise UsageError if a type's GPUs are no whole servers a stage, or are more than there are."""
    for count in kind.gpus:
        group, rest = divmod(count, kind.stages)
        if rest or group % per_host or group % kind.rings or count > gpus:
            raise UsageError(
                f"mix trace, type {name}: found {count} GPUs, allowed are at most {gpus} in stages of whole servers of "
                f"{per_host}, which {kind.rings} rings divide",
                "change `gpus`, `stages` or `rings`",
            )
