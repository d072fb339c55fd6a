# SPDX-License-Identifier: Apache-2.0
"""The links on which jobs and cross traffic meet."""

from collections import Counter
from collections.abc import Collection, Mapping

from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS
from roundabout.models.packets.steady_state import find_groups
from roundabout.spec import TrialSpec
from roundabout.spec.topology import Hop

Uses = Mapping[str, Mapping[Hop, float]]
"""By the name of a job or cross traffic: the share of time for which it keeps each link busy."""


def link_uses(spec: TrialSpec) -> Uses:
    """Return the links in use, in each direction, with the shares of time for which they would be busy.

    A job's share is that of its bytes while nothing delays it.
    """
    found: dict[str, Mapping[Hop, float]] = {}
    for name, job in spec.jobs.items():
        sizes = Counter[Hop]()
        for phase in job.profile.phases:
            sizes.update(spec.bytes_by_hop(name, phase))
        found[name] = {
            hop: size / (hop.link.payload_rate_gbps * BYTES_PER_MS_OF_GBPS * job.profile.alone_ms)
            for hop, size in sizes.items()
        }
    for name, traffic in spec.cross_traffic.items():
        shares = Counter[Hop]()
        for flow in traffic.flows:
            shares.update(spec.topology.link_shares(flow))
        load_gbps = traffic.load_gbps / len(traffic.receivers)
        found[name] = {hop: share * load_gbps / hop.link.payload_rate_gbps for hop, share in shares.items()}
    return found


def meeting_link(uses: Uses, one: str, others: Collection[str]) -> str | None:
    """Return the name of the busiest link on which `one` meets any of the others, or None if it meets none."""
    met = {
        hop: share + sum(uses[other].get(hop, 0.0) for other in others)
        for hop, share in uses[one].items()
        if any(uses[other].get(hop) for other in others)
    }
    busiest = max(met, key=met.__getitem__, default=None)
    return busiest and busiest.link.name


def meeting_groups(spec: TrialSpec, uses: Uses) -> list[frozenset[str]]:
    """Return the groups of jobs that share links, also by way of other jobs, each with the cross traffic it meets."""
    groups = []
    for jobs in find_groups(spec):
        hops = {hop for job in jobs for hop in uses[job]}
        groups.append(frozenset(jobs) | {name for name in spec.cross_traffic if hops & uses[name].keys()})
    return groups
