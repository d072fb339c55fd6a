# SPDX-License-Identifier: Apache-2.0
"""Model of an experiment: its trials, variants, repetitions and expectations."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Level, Name, NodeName, NotNegative, Positive, Strict, Text, Tuple, drop_defaults
from roundabout.spec.cassini import Cassini, Timetable
from roundabout.spec.cluster import Cluster
from roundabout.spec.expectation import AnyExpectation, with_basis
from roundabout.spec.patterns import ALIKE, Pattern, Transfer, flow_bytes
from roundabout.spec.profile import Phase, Profile, ProfileScaling
from roundabout.spec.routing import Flow, FlowPort, Routing, source_port
from roundabout.spec.topology import Delays, FeedbackDelay, Hop, Topology
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trainers import DEFAULT, Trainer
from roundabout.spec.training.launch import SLURM_PROBE
from roundabout.spec.transports import Transport
from roundabout.spec.transports.queues import RED_WEIGHT, QueueName

Jitter = Annotated[float, Field(ge=0, lt=1)]
Flows = Annotated[int, Field(ge=1, le=64)]
MAX_ITERATIONS = 100_000  # limit for a job; the fluid engine simulates some 7,000 a second, so more take minutes
Iterations = Annotated[int, Field(ge=1, le=MAX_ITERATIONS)]
Workers = Annotated[Tuple[NodeName], Field(min_length=2)]

# Name of the only variant of an experiment without the factor `variant`.
ONLY_VARIANT = "base"
FAIR = "fair"


# A job's priority is the DSCP of its packets, a field of 6 bits. 0 is left to packets without a priority.
Priority = Annotated[int, Field(ge=1, le=63)]
# Limit of queues for jobs. Ports have eight classes, one of which is reserved for CNPs.
MAX_QUEUES = 7
Queues = Annotated[int, Field(ge=2, le=MAX_QUEUES)]

RedWeight = Annotated[float, Field(gt=0, le=1)]


class WeightedQueues(Strict):
    """Deficit weighted round robin (DWRR) among the lowest priority queues of a switch's port.

    A round gives each queue its weight times the quantum (Shreedhar and Varghese, 1995). Higher queues, and CNPs, come
    first, strictly.
    """

    weights: Annotated[Tuple[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=2, max_length=MAX_QUEUES)] = (
        Field(description="of the lowest queues, from the one that strict priorities would serve last upwards")
    )
    quantum_bytes: Annotated[int, Field(ge=64, le=10**6)] | None = Field(
        default=None, description="bytes of frames that a weight of 1 sends in a round; default: a full frame"
    )


InputField = Literal["profile", "start_offset_ms"]


class InputValue(NamedTuple):
    """A field's value from earlier trials, and the keys of these trials."""

    value: Any
    trials: tuple[str, ...]


class JobFields(Strict):
    """The workers and times of a training job. Instants count from the trial's agreed start.

    `workers` lists the host of each worker; a host can appear several times. A job begins `start_offset_ms` (its
    time-shift) after `arrives_ms`. At `departs_ms` the job stops at once; an unfinished iteration does not count.
    """

    profile: Any
    workers: Workers = Field(description="host of each worker, by rank; a host may appear several times")
    trainer: Trainer = Field(default=DEFAULT, description="program that replays the profile, or trains a model")
    flows: Flows = Field(default=1, description="connections from a worker to each of its receivers")
    iterations: Iterations | None = Field(default=None, description="iterations of this job; default: the trial's")
    arrives_ms: NotNegative = Field(default=0.0, description="the job's arrival after the trial's agreed start")
    start_offset_ms: NotNegative = Field(
        default=0.0, description="time-shift: from the job's arrival to its first iteration"
    )
    departs_ms: Positive | None = Field(
        default=None,
        description="instant at which the job stops, after the trial's agreed start; default: after its iterations",
    )
    jitter: Jitter = Field(default=0.005, description="standard deviation of computing times, as a share of the time")
    transport: Transport = Field(description="the job's congestion control; fields that it omits are the experiment's")
    priority: Priority | None = Field(
        default=None, description="DSCP of the job's packets; ports send larger ones first, packets without one last"
    )
    inputs: dict[InputField, Name] = Field(
        default={},
        description="variant whose trials measure the value of a field; the field's own value is a placeholder",
    )

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the hosts of the job's workers without duplicates, in the order of ranks."""
        return tuple(dict.fromkeys(self.workers))

    @property
    def begins_ms(self) -> float:
        """Return the start of the job's first iteration, in ms after the trial's agreed start."""
        return self.arrives_ms + self.start_offset_ms

    @model_validator(mode="after")
    def _departs_after_it_began(self) -> Self:
        if self.departs_ms is not None and self.departs_ms <= self.begins_ms:
            raise ValueError(f"departs_ms after the job begins, at {self.begins_ms:g} ms")
        return self

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        unsaid: dict[str, Any] = {"priority": None, "timetable": None, "gpus": [], "source_ports": []}
        return drop_defaults(unsaid, handler(self))


class Job(JobFields):
    """A training job as declared. The experiment's profile and transport are its defaults."""

    profile: Name = Field(description="name of the job's profile; default: the experiment's")


class CrossTraffic(Strict):
    """Traffic that belongs to no job, from one host to others.

    `consistent` and `burst` are Salamy's web-search loads (Algorithms 1 and 2). `iperf` is a fixed number of long-lived
    flows (section 3.2). `load_gbps` is the requested payload rate to all receivers together.
    """

    model_config = ConfigDict(validate_by_alias=True)

    kind: Literal["consistent", "burst", "iperf"] = Field(
        description="Salamy's web-search loads, or long-lived flows of iperf"
    )
    sender: NodeName = Field(alias="from", description="host that sends")
    receivers: Annotated[Tuple[NodeName], Field(min_length=1)] = Field(alias="to", description="hosts that receive")
    load_gbps: Annotated[float, Field(ge=0, le=1e4)] = Field(
        description="requested payload rate to all receivers together"
    )
    transport: Transport = Field(default=Transport(name="cubic"), description="congestion control of this traffic")
    gaps: Literal["poisson-process", "poisson-distributed"] = Field(
        default="poisson-process",
        description="gaps between flows of `consistent`: exponential, or Poisson-distributed as Salamy's text says",
    )
    sizes_between: Literal["steps", "linear"] = Field(
        default="steps", description="sizes of web-search flows: only the listed ones (Salamy), or linear interpolation"
    )
    volumes: Literal["drawn", "exact"] = Field(
        default="drawn",
        description="bytes between bursts: drawn from scaled sizes (Algorithm 2), or the same in every period",
    )
    connections: Literal["pooled", "fresh"] = Field(
        default="pooled",
        description="connections of web-search flows: reused with their windows, or a new one for each flow",
    )
    traffic_class: Literal["jobs", "own"] = Field(
        default="jobs",
        description="traffic class: that of jobs without a priority, or a class of its own (on a rack)",
    )

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"traffic_class": "jobs"}, handler(self))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the host pairs (sender, receiver), in the order of the receivers."""
        return tuple((self.sender, receiver) for receiver in self.receivers)

    @property
    def is_random(self) -> bool:
        """Return True if the trial's seed determines the flows of this traffic."""
        return self.kind != "iperf" and self.load_gbps > 0


class Tcp(Strict):
    """TCP settings of all hosts, for any congestion control. The testbed chooses omitted settings."""

    ecn: bool | None = Field(
        default=None, description="whether TCP reacts to ECN marks; transports that stand for RDMA always do"
    )
    tail_loss_probes: bool | None = Field(default=None, description="whether senders use tail loss probes (RFC 8985)")
    delayed_acks: bool | None = Field(default=None, description="whether receivers may delay acknowledgments")

    @property
    def sysctls(self) -> dict[str, int]:
        """Return the Linux sysctls, by name, that apply the given settings."""
        requested = {
            "net.ipv4.tcp_ecn": {True: 1, False: 0, None: None}[self.ecn],
            "net.ipv4.tcp_early_retrans": {True: 3, False: 0, None: None}[self.tail_loss_probes],
        }
        return {name: value for name, value in requested.items() if value is not None}

    @property
    def route(self) -> dict[str, int]:
        """Return the attributes of `ip route`, by name, that apply the given settings."""
        return {} if self.delayed_acks is None else {"quickack": int(not self.delayed_acks)}


class Capture(Strict):
    """Packet captures by tcpdump on some hosts during each trial, with limits on their size."""

    hosts: Annotated[Tuple[NodeName], Field(min_length=1)] = Field(description="hosts whose packets are captured")
    snap_bytes: Annotated[int, Field(ge=64, le=65_535)] = Field(
        default=128, description="bytes captured of each packet"
    )
    budget_mb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200, description="limit of raw files of a host in a trial, MB; the oldest packets are deleted"
    )
    keep_mb: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=2000, description="limit of raw files of the run, MB; the oldest trials' are deleted, tables stay"
    )


class Treatment(Strict):
    """The fields that define one trial and that overlays may change. Profiles and topology are still names."""

    topology: Name = Field(description="name of the topology")
    line_rate_gbps: Positive | None = Field(
        default=None, description="replaces the topology's line rate; the payload rate scales with it by default"
    )
    payload_rate_gbps: Positive | None = Field(default=None, description="replaces the topology's payload rate")
    delays: Delays | None = Field(default=None, description="replaces those of the topology's delays that it has")
    routing: Routing | None = Field(default=None, description="replaces the topology's routing")
    profile: Name | None = Field(default=None, description="profile of every job without its own")
    resized: ProfileScaling | None = Field(default=None, description="factors of every job's profile")
    jobs: Annotated[dict[Name, Job], Field(min_length=1)] = Field(description="jobs of the trial, by name")
    cluster: Cluster | None = Field(default=None, description="trace of jobs and their scheduler, in place of `jobs`")
    cross_traffic: dict[Name, CrossTraffic] = Field(
        default={}, description="traffic of no job, which starts before the jobs"
    )
    load_gbps: Annotated[float, Field(ge=0, le=1e4)] | None = Field(
        default=None, description="load of all cross traffic without its own"
    )
    iterations: Iterations = Field(description="iterations of each job")
    transport: Transport | None = Field(
        default=None, description="transport of every job; a job's own is merged into it"
    )
    tcp: Tcp = Field(default=Tcp(), description="TCP settings of all hosts")
    queue: Literal[QueueName, "auto"] = Field(
        default="thresholds",
        description="kind of queue at switch ports; `auto`: the kind that the transports in use declare",
    )
    priority_queues: Queues = Field(
        default=MAX_QUEUES, description="priority queues of a port; lower priorities share the last"
    )
    dwrr: WeightedQueues | None = Field(
        default=None, description="weights of the lowest priority queues; default: higher priorities come first"
    )
    red_weight: RedWeight | None = Field(
        default=None, description=f"weight of a packet in the average of `queue: red`; default: {RED_WEIGHT}"
    )
    one_job_at_a_time: bool = Field(
        default=False, description="whether each job is a trial of its own, without the others"
    )
    cassini: Cassini | None = Field(
        default=None, description="Cassini: shifts jobs in time so that their demands interleave"
    )
    depends_on: Tuple[Name] = Field(default=(), description="variants whose trials must run before")
    capture: Capture | None = Field(default=None, description="hosts whose packets are captured")

    @model_validator(mode="after")
    def _only_who_meets_is_shifted(self) -> Self:
        if self.cassini and self.one_job_at_a_time:
            raise ValueError("either cassini or one_job_at_a_time: a job that runs alone needs no time shift")
        unknown = [name for name in (self.cassini.timetables if self.cassini else ()) if name not in self.jobs]
        if unknown:
            raise ValueError(f"timetables of jobs that there are: there is no {unknown[0]}")
        return self


class ClusterTreatment(Treatment):
    """A treatment whose jobs come from a cluster's trace."""

    cluster: Cluster
    jobs: dict[Name, Job] = Field(default={}, description="must be empty: the trace gives the jobs")
    iterations: Iterations = Field(default=1, description="unused: the trace gives each job's iterations")

    @model_validator(mode="after")
    def _jobs_of_the_trace_alone(self) -> Self:
        others = {"jobs": self.jobs, "one_job_at_a_time": self.one_job_at_a_time, "cassini": self.cassini}
        for field, found in others.items():
            if found:
                expected = "cluster alone: its jobs come by its trace, and Cassini is a part of it"
                said = {"location": (field,), "found": f"{field} beside cluster", "expected": expected, "hint": None}
                raise PydanticCustomError("located", "{expected}", said)
        return self


TIMELINE = frozenset(
    {"arrives_ms", "start_offset_ms", "departs_ms", "iterations", "inputs", "timetable", "gpus", "source_ports"}
)
"""Fields that place a job in time, on GPUs and on paths, among other jobs."""


class ResolvedJob(JobFields):
    """A training job with its profile resolved. Under Cassini, trials add the job's timetable.

    A job of a cluster's trace may have one worker, which sends nothing. With fewer workers than requested, the job has
    more iterations. In a window of a long trace, the number of iterations may exceed the limit.
    """

    profile: Profile
    workers: Annotated[Tuple[NodeName], Field(min_length=1)]
    # Runs of version 0.1 stored `inputs` as `takes`, and a cell's `depends_on` as `needs`.
    inputs: dict[InputField, Name] = Field(default={}, validation_alias=AliasChoices("inputs", "takes"))
    iterations: Annotated[int, Field(ge=1)] | None = None
    arrives_ms: Annotated[float, Field(ge=0)] = 0.0
    departs_ms: Annotated[float, Field(gt=0)] | None = None
    timetable: Timetable | None = None
    # The number of each worker's GPU in its host. Without it, the k-th worker of a host has GPU k.
    gpus: Tuple[Annotated[int, Field(ge=0)]] = ()
    # Chosen ports. Other flows have a port that is a hash of their job's name and their ranks.
    source_ports: Tuple[FlowPort] = ()

    @property
    def begins_ms(self) -> float:
        """Return the start of the job's first iteration, in ms after the agreed start, delayed by any timetable."""
        comes_ms = super().begins_ms
        return comes_ms if self.timetable is None else comes_ms + self.timetable.early_ms(comes_ms)

    @property
    def held_timetable(self) -> Timetable | None:
        """Return the timetable by which the job's agents delay all iterations, or None if they do not."""
        return self.timetable if self.timetable and self.timetable.holds else None

    @property
    def as_document(self) -> dict[str, Any]:
        """Return the job's fields as in an experiment file, without its times, and with its profile's name."""
        declared = self.model_dump(mode="json", exclude=set(TIMELINE), exclude_none=True)
        return declared | {"profile": self.profile.name, "transport": self.transport.as_document}

    def transfers(self, phase: Phase) -> tuple[Transfer, ...]:
        """Return the transfers between the job's workers in `phase`. Workers are ranks."""
        return phase.transfers(len(self.workers))

    def routes(self, name: str, transfer: Transfer, topology: Topology) -> tuple[tuple[Hop, ...], ...]:
        """Return the path of each of a transfer's flows; `name` is the job's.

        Where all flows between two hosts take one path, there is one entry for all of them.
        """
        ranks, numbers = (transfer.sender, transfer.receiver), self.routed_flows(transfer, topology)
        return tuple(topology.path(*self.flow(name, *ranks, number, topology)) for number in numbers)

    @property
    def channels(self) -> int:
        """Return the number of channels that the job's transfers use."""
        return 1 + max((each.channel for phase in self.profile.phases for each in self.transfers(phase)), default=0)

    def flow_numbers(self, transfer: Transfer) -> range:
        """Return the numbers of a transfer's flows among all flows from its sender to its receiver."""
        first = transfer.channel * self.flows
        return range(first, first + self.flows)

    def routed_flows(self, transfer: Transfer, topology: Topology) -> range:
        """Return the numbers of a transfer's flows, or 0 alone where all flows between two hosts take one path."""
        return self.flow_numbers(transfer) if topology.hashes_flows else range(1)

    def flow(self, name: str, sender: int, receiver: int, number: int, topology: Topology) -> Flow:
        """Return flow `number` from one rank to another; `name` is the job's.

        A worker uses the NIC that its GPU is next to, of the GPU's number, for its flow 0, and so on for further ones.
        """
        hosts = self.workers[sender], self.workers[receiver]
        if not topology.hashes_flows:
            return Flow(*hosts)
        port = self._chosen_ports.get((sender, receiver, number)) or source_port(name, sender, receiver, number)
        if not topology.has_rails:
            return Flow(*hosts, port)
        own, other = (number + self._gpu(rank) for rank in (sender, receiver))
        return Flow(*hosts, port, (other if topology.crosses_nvlink else own, other))

    @cached_property
    def _chosen_ports(self) -> dict[tuple[int, int, int], int]:
        return {(each.sender, each.receiver, each.number): each.port for each in self.source_ports}

    def _gpu(self, rank: int) -> int:
        return self.gpus[rank] if self.gpus else self.workers[:rank].count(self.workers[rank])

    @property
    def common_pattern(self) -> Pattern | None:
        """Return the symmetric pattern that all sending phases use, or None.

        None also if a host has several workers, or if a phase has groups.
        """
        sending = [phase for phase in self.profile.phases if phase.bytes]
        patterns = {phase.pattern for phase in sending}
        each_its_own = self.hosts == self.workers
        plain = len(patterns) == 1 and not any(phase.groups for phase in sending) and each_its_own
        return next((pattern for pattern in patterns if pattern in ALIKE), None) if plain else None

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the distinct host pairs (sender, receiver) of all transfers, in the order of phases and ranks."""
        everything = (transfer for phase in self.profile.phases for transfer in self.transfers(phase))
        hosts = ((self.workers[each.sender], self.workers[each.receiver]) for each in everything)
        return tuple(dict.fromkeys(pair for pair in hosts if pair[0] != pair[1]))


class TrialSpec(Strict):
    """The complete specification of one trial, in the papers' units."""

    topology: Topology
    jobs: dict[Name, ResolvedJob]
    cluster: Cluster | None = None
    submitted: Tuple[SubmittedJob] = Field(default=(), description="jobs in the file of a cluster's trace")
    cross_traffic: dict[Name, CrossTraffic] = Field(default={})
    iterations: Iterations
    tcp: Tcp = Tcp()
    queue: QueueName = "thresholds"
    priority_queues: Queues = MAX_QUEUES
    dwrr: WeightedQueues | None = None
    red_weight: RedWeight | None = None
    one_job_at_a_time: bool = False
    cassini: Cassini | None = None
    capture: Capture | None = None

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        of_jobs = {"queue": "thresholds", "priority_queues": MAX_QUEUES, "cassini": None}
        of_jobs |= {"dwrr": None, "red_weight": None}
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
    def switch_features(self) -> dict[str, str]:
        """Return the features of switches that the trial requires and only the packet-level model has, by field."""
        requested = {
            "topology.buffer": self.topology.buffer and f"{self.topology.buffer.bytes} bytes that ports share",
            "queue": "red" if self.queue == "red" else None,
            "dwrr": self.dwrr and f"weights {', '.join(map(str, self.dwrr.weights))}",
        }
        return {field: found for field, found in requested.items() if found}

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
        """Return the transport of a host's connections, or None if the host has no part in the trial.

        The transport is that of the host's job. Without a job, it is that of the cross traffic that the host sends or
        receives, because DCQCN needs both ends of a connection.
        """
        traffics = self.cross_traffic.values()
        users: list[ResolvedJob | CrossTraffic] = [
            *(job for job in self.jobs.values() if host in job.workers),
            *(traffic for traffic in traffics if host == traffic.sender),
            *(traffic for traffic in traffics if host in traffic.receivers),
        ]
        return users[0].transport if users else None

    def iterations_of(self, job: str) -> int:
        """Return the number of a job's iterations. A departure may end the job before."""
        return self.jobs[job].iterations or self.iterations

    def routes_of(self, job: str) -> tuple[tuple[Hop, ...], ...]:
        """Return the routes of all flows of the job, each once."""
        own = self.jobs[job]
        if not self.topology.hashes_flows:
            return tuple(self.topology.path(*pair) for pair in own.pairs)
        transfers = (transfer for phase in own.profile.phases for transfer in own.transfers(phase))
        return tuple(dict.fromkeys(each for transfer in transfers for each in own.routes(job, transfer, self.topology)))

    def hops(self, job: str) -> tuple[Hop, ...]:
        """Return each link and direction over which the job sends, once."""
        return tuple(dict.fromkeys(hop for route in self.routes_of(job) for hop in route))

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

    def bytes_by_hop(self, job: str, phase: Phase) -> dict[Hop, int]:
        """Return the payload bytes that the job sends over each link and direction in `phase`."""
        own, found = self.jobs[job], dict[Hop, int]()
        for each in own.transfers(phase):
            routes = own.routes(job, each, self.topology)
            for number, route in enumerate(routes):
                for hop in route:
                    found[hop] = found.get(hop, 0) + flow_bytes(each.bytes, len(routes), number)
        return found

    def bytes_by_host_hop(self, job: str, phase: Phase) -> dict[Hop, int]:
        """Return `bytes_by_hop` for the links of hosts alone, which depend on no choice of a switch."""
        own, sent, received = self.jobs[job], Counter[tuple[str, int]](), Counter[tuple[str, int]]()
        for each in own.transfers(phase):
            numbers = own.routed_flows(each, self.topology)
            for index, number in enumerate(numbers):
                flow = own.flow(job, each.sender, each.receiver, number, self.topology)
                if flow.sender != flow.receiver:
                    size = flow_bytes(each.bytes, len(numbers), index)
                    sent[flow.sender, flow.nics[0]] += size
                    received[flow.receiver, flow.nics[1]] += size
        found = Counter[Hop]()
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


def _one_or_many(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if isinstance(item, list | tuple) else [item] for key, item in value.items()}
    return value


Excluded = Annotated[
    dict[Name, Annotated[Tuple[Level], Field(min_length=1)]],
    BeforeValidator(_one_or_many, json_schema_input_type=dict[Name, Level | list[Level]]),
]


class StudyChoice(Strict):
    """The study that reports on the runs, and its baseline. Studies are the folders of `analysis/studies`."""

    kind: Name | None = Field(default=None, description="name of the study; default: one that suits the varied factors")
    baseline: Level | None = Field(
        default=None,
        description="baseline of speed-ups: a variant, or a level of `over`; default: the variant `fair`, else the "
        "first variant with concurrent jobs, else the first level",
    )
    over: Name | None = Field(default=None, description="factor along the x-axis of the study's figures")

    def x_factor(self, factors: Iterable[str]) -> str:
        """Return the factor along the x-axis: `over`, else the first factor besides `variant`, else `variant`."""
        return self.over or next((name for name in factors if name != "variant"), "variant")


def _named(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Study = Annotated[StudyChoice, BeforeValidator(_named, json_schema_input_type=Name | StudyChoice)]


def _by_name(value: Any) -> Any:
    """Set the names of profiles or topologies from their keys."""
    if not isinstance(value, Mapping):
        return value
    return {name: {"name": name, **each} if isinstance(each, Mapping) else each for name, each in value.items()}


# Header fields that do not affect a trial's measurements.
ASIDE = (
    *("name", "about", "source", "study", "exclude", "repetitions", "seed", "only"),
    *("scale", "dilation", "transport_dilation"),
)


class ExperimentHeader(Strict):
    """The fields of the experiment as a whole, which overlays must not change."""

    schema_version: Literal[1] = Field(default=1, alias="schema", description="version of the format")
    name: Name = Field(description="name of the experiment; its runs lie in `runs/NAME`")
    about: Text = Field(description="description in a sentence")
    source: Text | None = Field(default=None, description="what it repeats: paper, figure or table")
    study: Study = Field(default=StudyChoice(), description="study that reports on the runs, or its fields")
    exclude: Tuple[Annotated[Excluded, Field(min_length=1)]] = Field(
        default=(), description="combinations of levels that are not run"
    )
    repetitions: Annotated[int, Field(ge=1, le=1000)] = Field(default=1, description="repetitions of each cell")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        default=1, description="seed of everything random: the order of trials, jitter, cross traffic"
    )
    only: Tuple[Name] = Field(
        default=(), description="variants to run, with their dependencies, and levels of other factors; default: all"
    )
    changes: dict[str, Any] = Field(
        default={}, alias="set", description="overrides by dotted path, on top of every level, as `--set` records them"
    )
    scale: Annotated[float, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="divisor of rates and bytes in the lab; `--scale` replaces it"
    )
    dilation: Annotated[float, Field(ge=1, le=1000)] | None = Field(
        default=None, description="factor of all times in the lab; `--dilation` replaces it"
    )
    transport_dilation: Annotated[float, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="factor of the transport's times and thresholds in the lab, from `dilation` on, which is the "
        "default; with `--dilation` it does not apply",
    )
    profiles: Annotated[dict[Name, Profile], BeforeValidator(_by_name)] = Field(
        default={}, description="profiles of this experiment, by name; they hide the library's"
    )
    topologies: Annotated[dict[Name, Topology], BeforeValidator(_by_name)] = Field(
        default={}, description="topologies of this experiment, by name; they hide the library's"
    )

    @field_validator("transport_dilation")
    @classmethod
    def _above_dilation(cls, value: float | None, info: ValidationInfo) -> float | None:
        dilation = info.data.get("dilation")
        if value is not None and (dilation is None or value < dilation):
            raise ValueError("a `dilation` beside it, and no less than that")
        return value

    @property
    def altered_fields(self) -> dict[str, Any]:
        """Return the overrides in `set` that affect measurements. Empty if `set` also overrides the expectations."""
        if "expect" in self.changes:
            return {}
        return {path: value for path, value in self.changes.items() if path.partition(".")[0] not in ASIDE}


class Cell(Strict):
    """One combination of levels, and the specification of its trials."""

    levels: dict[Name, Level]
    spec: TrialSpec
    depends_on: Tuple[Name] = Field(default=(), validation_alias=AliasChoices("depends_on", "needs"))

    @property
    def variant(self) -> str:
        """Return the level of the factor `variant`."""
        return str(self.levels.get("variant", ONLY_VARIANT))

    @property
    def dependencies(self) -> dict[tuple[str | int, ...], str]:
        """Return the variants whose trials must run before, by the location of the field that names the variant.

        The fields are `depends_on`, `cassini.profiles`, and each job's `inputs`.
        """
        found: dict[tuple[str | int, ...], str] = {
            ("depends_on", index): name for index, name in enumerate(self.depends_on)
        }
        if self.spec.cassini and self.spec.cassini.profiles:
            found["cassini", "profiles"] = self.spec.cassini.profiles
        for name, job in self.spec.jobs.items():
            found |= {("jobs", name, "inputs", field): variant for field, variant in job.inputs.items()}
        return found


class Baseline(NamedTuple):
    """The baseline of speed-ups: a level of a factor."""

    factor: str
    level: Level


class Experiment(ExperimentHeader):
    """An experiment with every combination of levels merged, checked and resolved.

    `document` is the content of its file as written.
    """

    factors: dict[Name, Tuple[Level]]
    cells: Tuple[Cell]
    expect: Annotated[Tuple[AnyExpectation], BeforeValidator(with_basis)] = ()
    document: dict[str, Any]

    @property
    def variants(self) -> tuple[str, ...]:
        """Return the variants in the order of the file."""
        return tuple(str(level) for level in self.factors.get("variant", (ONLY_VARIANT,)))

    @property
    def x_factor(self) -> str:
        """Return the factor along the x-axis of the study's figures."""
        return self.study.x_factor(self.factors)

    @property
    def baseline(self) -> Baseline:
        """Return the baseline of speed-ups. A baseline that an older run names but does not contain is ignored."""
        requested, levels = self.study.baseline, self.factors.get(self.x_factor, ())
        if requested is not None and requested in self.variants:
            return Baseline("variant", requested)
        if requested is not None and requested in levels:
            return Baseline(self.x_factor, requested)
        if len(self.variants) == 1 and levels:
            return Baseline(self.x_factor, levels[0])
        concurrent = (cell.variant for cell in self.cells if not cell.spec.one_job_at_a_time)
        return Baseline("variant", FAIR if FAIR in self.variants else next(concurrent, self.variants[0]))

    @property
    def transports(self) -> dict[str, Transport]:
        """Return all transports in use, by name."""
        return {name: transport for cell in self.cells for name, transport in cell.spec.transports.items()}

    @property
    def probes(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """Return pairs of a host and a command that fails on the host if a requirement of its trainers is missing."""
        jobs = [job for cell in self.cells for job in cell.spec.jobs.values()]
        needed = ((job, probe) for job in jobs for probe in (job.trainer.probe, job.trainer.scheduled and SLURM_PROBE))
        return frozenset((host, probe) for job, probe in needed if probe for host in job.workers)

    @property
    def trial_count(self) -> int:
        """Return the number of trials in one run of the experiment, over all repetitions."""
        return self.repetitions * sum(len(cell.spec.jobs) if cell.spec.one_job_at_a_time else 1 for cell in self.cells)
