# SPDX-License-Identifier: Apache-2.0
"""Model of one trial's complete specification."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from roundabout.spec.base import Name, NotNegative, Strict, Tuple, drop_defaults
from roundabout.spec.capture import Capture
from roundabout.spec.cassini import Cassini
from roundabout.spec.cluster import Cluster
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.spec.delays import FeedbackDelay
from roundabout.spec.job import InputValue, Iterations, ResolvedJob
from roundabout.spec.link_events import LinkChange, LinkEvent, RouteChange, list_link_changes, list_route_changes
from roundabout.spec.patterns import flow_bytes
from roundabout.spec.priority_queues import MAX_QUEUES, Queues, WeightedQueues
from roundabout.spec.profile import Phase
from roundabout.spec.routing import Flow
from roundabout.spec.tcp import Tcp
from roundabout.spec.topology import Hop, Topology
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.transports import Transport
from roundabout.spec.transports.queues import QueueName
from roundabout.spec.treatment import ErrorShare, RedWeight


class TrialSpec(Strict):
    """The complete specification of one trial, in the papers' units."""

    topology: Topology
    jobs: dict[Name, ResolvedJob]
    cluster: Cluster | None = None
    submitted: Tuple[SubmittedJob] = Field(default=(), description="jobs in the file of a cluster's trace")
    cross_traffic: dict[Name, CrossTraffic] = Field(default={})
    events: Tuple[LinkEvent] = ()
    reroute_after_ms: NotNegative | None = None
    iterations: Iterations
    tcp: Tcp = Tcp()
    queue: QueueName = "thresholds"
    priority_queues: Queues = MAX_QUEUES
    dwrr: WeightedQueues | None = None
    red_weight: RedWeight | None = None
    skip_within: ErrorShare | None = None
    one_job_at_a_time: bool = False
    cassini: Cassini | None = None
    capture: Capture | None = None

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        of_jobs = {"queue": "thresholds", "priority_queues": MAX_QUEUES, "cassini": None}
        of_jobs |= {"dwrr": None, "red_weight": None, "skip_within": None, "events": [], "reroute_after_ms": None}
        return drop_defaults({**of_jobs, "cluster": None, "submitted": []}, handler(self))

    @property
    def may_drop(self) -> bool:
        """Return True if switch ports may drop packets in this trial."""
        return self.queue == "drop-tail" or self.topology.queue == "lossy"

    @property
    def queue_of_priority(self) -> dict[int, int]:
        """Return the port queue of each priority in use. Queue 0 is served last.

        Packets without a priority use queue 0. The highest priorities get a queue each, as far as the queues suffice;
        the remaining priorities share queue 0. The result is empty if no job has a priority.
        """
        ranked = sorted({job.priority for job in self.jobs.values() if job.priority}, reverse=True)
        others = any(job.priority is None for job in self.jobs.values()) or bool(self.cross_traffic)
        own = min(len(ranked) if others else len(ranked) - 1, self.priority_queues - 1)
        return {priority: max(own - rank, 0) for rank, priority in enumerate(ranked)}

    @property
    def data_queues(self) -> int:
        """Return how many of a port's queues have packets of jobs or cross traffic: those from 0 up."""
        return 1 + max(self.queue_of_priority.values(), default=0)

    @property
    def loses_packets(self) -> bool:
        """Return True if an event of the trial lets a link fail or lose packets."""
        return any(event.what in ("fails", "loses") for event in self.events)

    @property
    def switch_features(self) -> dict[str, str]:
        """Return the features of switches that the trial requires and only the packet-level model has, by field."""
        requested = {
            "topology.buffer": self.topology.buffer and f"{self.topology.buffer.bytes} bytes that ports share",
            "topology.trimming": "true" if self.topology.trimming else None,
            "topology.links.queue_share": ", ".join(
                f"{link.queue_share:g} of {link.name}" for link in self.topology.links if link.queue_share < 1
            ),
            "queue": "red" if self.queue == "red" else None,
            "dwrr": self.dwrr and f"weights {', '.join(map(str, self.dwrr.weights))}",
        }
        return {field: found for field, found in requested.items() if found}

    @property
    def link_changes(self) -> tuple[LinkChange, ...]:
        """Return the states of links after the trial's events, in the order of instants."""
        return tuple(list_link_changes(self.events))

    @property
    def route_changes(self) -> tuple[RouteChange, ...]:
        """Return the links that routes avoid after the trial's events, in the order of instants."""
        return () if self.reroute_after_ms is None else tuple(list_route_changes(self.events, self.reroute_after_ms))

    @property
    def feedback_delay(self) -> FeedbackDelay | None:
        """Return the least and the most time from a mark to the cut of a rate over all paths of jobs with RDMA."""
        pairs = {pair for job in self.jobs.values() if job.transport.stands_for == "RDMA" for pair in job.pairs}
        delays = [self.topology.feedback_delay(*pair) for pair in sorted(pairs)]
        if not delays:
            return None
        return FeedbackDelay(min(each.least_us for each in delays), max(each.most_us for each in delays))

    @property
    def has_concurrent_jobs(self) -> bool:
        """Return True if several jobs run at the same time."""
        return (self.cluster is not None or len(self.jobs) > 1) and not self.one_job_at_a_time

    @property
    def transports(self) -> dict[str, Transport]:
        """Return all transports in use, by name, each with the parameters of its last user."""
        return {user.transport.name: user.transport for user in self.users}

    @property
    def users(self) -> tuple[ResolvedJob | CrossTraffic | Cluster, ...]:
        """Return everything with connections: the jobs, the cross traffic, and the cluster if there is one."""
        cluster = () if self.cluster is None else (self.cluster,)
        return *self.jobs.values(), *self.cross_traffic.values(), *cluster

    @property
    def cross_traffic_gbps(self) -> float:
        """Return the requested load of all cross traffic together, in Gbit/s."""
        return sum(traffic.load_gbps for traffic in self.cross_traffic.values())

    @property
    def has_random_parts(self) -> bool:
        """Return True if the seed determines any part of the trial: random cross traffic, or a cluster's trace."""
        return self.cluster is not None or any(traffic.is_random for traffic in self.cross_traffic.values())

    def transport_of(self, host: str) -> Transport | None:
        """Return the transport of a host's connections, or None if the host has no part in the trial."""
        return self.transport_by_host.get(host)

    @property
    def transport_by_host(self) -> dict[str, Transport]:
        """Return the transport of the connections of each host that has a part in the trial.

        The transport is that of the host's job. Without a job, it is that of the cross traffic that the host sends or
        receives, because DCQCN needs both ends of a connection.
        """
        traffics = self.cross_traffic.values()
        users = [
            *((host, job.transport) for job in self.jobs.values() for host in job.workers),
            *((traffic.sender, traffic.transport) for traffic in traffics),
            *((host, traffic.transport) for traffic in traffics for host in traffic.receivers),
        ]
        return dict(reversed(users))  # the first user of a host

    def iterations_of(self, job: str) -> int:
        """Return the number of a job's iterations. A departure may end the job before."""
        return self.jobs[job].iterations or self.iterations

    def routes_of(self, job: str) -> tuple[tuple[Hop, ...], ...]:
        """Return the routes of all flows of the job, each once.

        If packets of a flow take different paths, its route is one of them; `hops` and `turns` have all.
        """
        own = self.jobs[job]
        if not self.topology.hashes_flows:
            return tuple(self.topology.path(*pair) for pair in own.pairs)
        transfers = (transfer for phase in own.profile.phases for transfer in own.transfers(phase))
        return tuple(dict.fromkeys(each for transfer in transfers for each in own.routes(job, transfer, self.topology)))

    def hops(self, job: str) -> tuple[Hop, ...]:
        """Return each link and direction over which the job sends, once."""
        if self.topology.spreads_packets:
            return tuple(dict.fromkeys(hop for flow in self.flows_of(job) for hop in self.topology.link_shares(flow)))
        return tuple(dict.fromkeys(hop for route in self.routes_of(job) for hop in route))

    def turns(self, job: str) -> Iterator[tuple[Hop, Hop]]:
        """Yield each two links that packets of the job cross one after the other. Some come several times."""
        if not self.topology.spreads_packets:
            yield from (each for route in self.routes_of(job) for each in pairwise(route))
            return
        for flow in self.flows_of(job):
            behind = defaultdict[str, list[Hop]](list)
            for hop in self.topology.link_shares(flow):
                behind[hop.sender].append(hop)
            for hop in self.topology.link_shares(flow):
                yield from ((hop, after) for after in behind[hop.receiver])

    def flows_of(self, job: str) -> Iterator[Flow]:
        """Yield all flows of the job."""
        own = self.jobs[job]
        for phase in own.profile.phases:
            for transfer in own.transfers(phase):
                yield from own.flows_of(job, transfer, self.topology)

    @property
    def jobs_by_link(self) -> dict[str, tuple[str, ...]]:
        """Return, by the link's name, the jobs on each link that several jobs cross."""
        crossing: dict[str, list[str]] = {link.name: [] for link in self.topology.links}
        for job in self.jobs:
            for link in dict.fromkeys(hop.link.name for hop in self.hops(job)):
                crossing[link].append(job)
        return {link: tuple(jobs) for link, jobs in crossing.items() if len(jobs) > 1}

    def shared_bottlenecks(self, jobs: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return, by the link's name, which of these jobs share a link while they all run.

        Of links that the same jobs cross, or only some of them, one stands for all: a link that is marked `bottleneck`,
        or else the narrowest. Empty if one job runs at a time.
        """
        if self.one_job_at_a_time:
            return {}
        found: dict[tuple[str, ...], str] = {}
        crossed = self.jobs_by_link
        rates = {link.name: (not link.bottleneck, link.payload_rate_gbps) for link in self.topology.links}
        for link in sorted(crossed, key=rates.__getitem__):
            sharing = tuple(job for job in crossed[link] if job in jobs)
            if len(sharing) > 1:
                found.setdefault(sharing, link)
        largest = {link: own for own, link in found.items() if not any({*own} < {*other} for other in found)}
        return {link: largest[link] for link in crossed if link in largest}

    def bytes_by_hop(self, job: str, phase: Phase) -> dict[Hop, float]:
        """Return the payload bytes that the job sends over each link and direction in `phase`.

        If packets of a flow take different paths, its bytes are those of `Topology.link_shares`.
        """
        own, found = self.jobs[job], dict[Hop, float]()
        for each in own.transfers(phase):
            flows = own.flows_of(job, each, self.topology)
            for number, flow in enumerate(flows):
                size = flow_bytes(each.bytes, len(flows), number)
                for hop, share in self.topology.link_shares(flow).items():
                    found[hop] = found.get(hop, 0) + size * share
        return found

    def bytes_by_host_hop(self, job: str, phase: Phase) -> dict[Hop, float]:
        """Return `bytes_by_hop` for the links of hosts alone, which depend on no choice of a switch."""
        if self.topology.spreads_packets:
            hosts = frozenset(self.topology.hosts)
            everything = self.bytes_by_hop(job, phase)
            return {hop: size for hop, size in everything.items() if not hosts.isdisjoint(hop.link.ends)}
        own, sent, received = self.jobs[job], Counter[tuple[str, int]](), Counter[tuple[str, int]]()
        for each in own.transfers(phase):
            numbers = own.routed_flows(each, self.topology)
            for index, number in enumerate(numbers):
                flow = own.flow(job, each.sender, each.receiver, number, self.topology)
                if flow.sender != flow.receiver:
                    size = flow_bytes(each.bytes, len(numbers), index)
                    sent[flow.sender, flow.nics[0]] += size
                    received[flow.receiver, flow.nics[1]] += size
        found = defaultdict[Hop, float](int)
        for (host, nic), size in sent.items():
            found[self.topology.first_hop(host, nic)] += size
        for (host, nic), size in received.items():
            found[self.topology.first_hop(host, nic).turned] += size
        return dict(found)

    def with_one_job(self, job: str) -> "TrialSpec":
        """Return the trial with only `job`, whose arrival is moved to the trial's start."""
        own = self.jobs[job]
        departs_ms = None if own.departs_ms is None else own.departs_ms - own.arrives_ms
        return self.model_copy(
            update={"jobs": {job: own.model_copy(update={"arrives_ms": 0.0, "departs_ms": departs_ms})}}
        )

    @property
    def has_inputs(self) -> bool:
        """Return True if a job needs inputs from earlier trials or a timetable from Cassini."""
        return self.cassini is not None or any(job.inputs for job in self.jobs.values())

    def with_inputs(self, values: Mapping[str, Mapping[str, InputValue]]) -> "TrialSpec":
        """Return the trial with placeholders replaced by input values (job -> field -> value)."""
        taken = {name: {field: each.value for field, each in fields.items()} for name, fields in values.items()}
        jobs = {name: job.model_copy(update=taken.get(name, {})) for name, job in self.jobs.items()}
        return self.model_copy(update={"jobs": jobs})
