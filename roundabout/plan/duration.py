# SPDX-License-Identifier: Apache-2.0
"""How long a trial takes."""

from collections import defaultdict
from collections.abc import Mapping

from roundabout.spec.experiment import ResolvedJob, TrialSpec
from roundabout.spec.topology import Hop

# Of a link, to jobs, where cross traffic asks for all of it.
LEAST_SHARE = 0.05


def expected_iterations_s(spec: TrialSpec) -> float:
    """How long a trial's iterations take at worst: as if all jobs on a link always sent at once."""
    load: defaultdict[Hop, float] = defaultdict(float)
    for job in spec.jobs.values():
        for hop in _hops(spec, job):
            load[hop] += _mean_demand_gbps(job)
    taken = _taken(spec)
    return max(spec.iterations * _iteration_s(spec, job, load, taken) for job in spec.jobs.values())


def _taken(spec: TrialSpec) -> Mapping[Hop, float]:
    """Gbit/s that cross traffic takes of each link."""
    taken: defaultdict[Hop, float] = defaultdict(float)
    for traffic in spec.cross_traffic.values():
        for receiver in traffic.receivers:
            for hop in spec.topology.path(traffic.sender, receiver):
                taken[hop] += traffic.load_gbps / len(traffic.receivers)
    return taken


def _iteration_s(spec: TrialSpec, job: ResolvedJob, load: Mapping[Hop, float], taken: Mapping[Hop, float]) -> float:
    slowdown = max([1.0, *(load[hop] / _left_gbps(hop, taken) for hop in _hops(spec, job))])
    return (job.profile.compute_ms + slowdown * job.profile.comm_ms) / 1e3


def _left_gbps(hop: Hop, taken: Mapping[Hop, float]) -> float:
    """What cross traffic leaves of a link to jobs; some always gets through."""
    rate = hop.link.payload_rate_gbps
    return max(rate - taken.get(hop, 0.0), LEAST_SHARE * rate)


def _hops(spec: TrialSpec, job: ResolvedJob) -> list[Hop]:
    return [hop for pair in job.ring for hop in spec.topology.path(*pair)]


def _mean_demand_gbps(job: ResolvedJob) -> float:
    """A job's payload rate while it communicates alone."""
    return job.profile.comm_bytes * 8 / job.profile.comm_ms / 1e6 if job.profile.comm_ms else 0.0
