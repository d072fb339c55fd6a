# SPDX-License-Identifier: Apache-2.0
"""Expected durations of trials and of a run's report."""

from collections import defaultdict
from collections.abc import Mapping

from roundabout.spec.job import ResolvedJob
from roundabout.spec.topology import Hop
from roundabout.spec.trial_spec import TrialSpec

# Seconds that each trial takes besides its iterations: settings, start, fetch and check.
OVERHEAD_S = 1.5

# Seconds for the summary and the report of a run, and for each trial in it. The processor took 14 to 19 s for 6 trials
# of other studies and testbeds, 21 s for 6 trials of unfair-vgg19 packet by packet, and 23 s for 24 of them.
REPORT_S, REPORT_TRIAL_S = 20.0, 0.15

# Share of a link's rate that jobs get if cross traffic requests all of it. A share of 0 would give infinite durations.
MIN_SHARE = 0.05


def expected_iterations_s(spec: TrialSpec) -> float:
    """Return the longest expected time from a trial's agreed start to the end of its last job, in seconds.

    The iterations take as long as `iteration_s` says.
    """
    return max(_end_s(spec, name) for name in spec.jobs)


def iteration_s(spec: TrialSpec, name: str) -> float:
    """Return the longest expected iteration time of the job `name`, in seconds.

    All jobs whose presence may overlap are assumed to send at the same time always.
    """
    job, demands, taken = spec.jobs[name], _demands_gbps(spec, name), _cross_traffic_gbps(spec)
    load = defaultdict[Hop, float](float)
    for other in spec.jobs:
        if _may_overlap(job, spec.jobs[other]):
            for hop, gbps in _demands_gbps(spec, other).items():
                load[hop] += gbps
    slowdown = max([1.0, *(load[hop] / _residual_gbps(hop, taken) for hop in demands)])
    return (job.profile.compute_ms + slowdown * job.profile.comm_ms) / 1e3


def _end_s(spec: TrialSpec, name: str) -> float:
    job = spec.jobs[name]
    end_s = job.begins_ms / 1e3 + spec.iterations_of(name) * iteration_s(spec, name)
    return end_s if job.departs_ms is None else min(end_s, job.departs_ms / 1e3)


def _may_overlap(one: ResolvedJob, other: ResolvedJob) -> bool:
    """Return True unless one job has surely departed when the other begins."""
    return all(
        gone.departs_ms is None or gone.departs_ms > comes.begins_ms for gone, comes in ((one, other), (other, one))
    )


def _cross_traffic_gbps(spec: TrialSpec) -> Mapping[Hop, float]:
    """Return the rate of cross traffic on each link."""
    taken: defaultdict[Hop, float] = defaultdict(float)
    for traffic in spec.cross_traffic.values():
        for flow in traffic.flows:
            for hop, share in spec.topology.link_shares(flow).items():
                taken[hop] += share * traffic.load_gbps / len(traffic.receivers)
    return taken


def _residual_gbps(hop: Hop, taken: Mapping[Hop, float]) -> float:
    """Return the rate that cross traffic leaves to jobs on a link, which is never 0."""
    rate = hop.link.payload_rate_gbps
    return max(rate - taken.get(hop, 0.0), MIN_SHARE * rate)


def _demands_gbps(spec: TrialSpec, name: str) -> Mapping[Hop, float]:
    """Return a job's payload rate on each link, while it communicates alone; the mean of its phases."""
    demands: defaultdict[Hop, float] = defaultdict(float)
    profile = spec.jobs[name].profile
    for phase in profile.phases:
        for hop, size in spec.bytes_by_hop(name, phase).items():
            demands[hop] += size * 8 / profile.comm_ms / 1e6
    return demands
