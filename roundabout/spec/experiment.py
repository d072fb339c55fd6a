# SPDX-License-Identifier: Apache-2.0
"""An experiment: its trials, variants and repetitions, and the papers' findings."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Level, Name, NodeName, NotNegative, Positive, Strict, Text, Tuple, drop_defaults
from roundabout.spec.cassini import Cassini, Timetable
from roundabout.spec.cluster import Cluster
from roundabout.spec.expectation import AnyExpectation, with_basis
from roundabout.spec.patterns import ALIKE, Pattern, Transfer
from roundabout.spec.profile import Phase, Profile, ProfileScaling
from roundabout.spec.topology import Hop, Topology
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trainers import DEFAULT, Trainer
from roundabout.spec.training.launch import SLURM_PROBE
from roundabout.spec.transports import Transport
from roundabout.spec.transports.queues import QueueName

Jitter = Annotated[float, Field(ge=0, lt=1)]
Flows = Annotated[int, Field(ge=1, le=64)]
MOST_ITERATIONS = 100_000  # of a job: the fluid engine plays some 7,000 a second, so more would take minutes
Iterations = Annotated[int, Field(ge=1, le=MOST_ITERATIONS)]
Workers = Annotated[Tuple[NodeName], Field(min_length=2)]

# The variant of an experiment that has no factor of that name.
ONLY_VARIANT = "base"
FAIR = "fair"


# A packet's DSCP is its job's priority: a whole number of those that IP has room for. 0 is everybody else's.
Priority = Annotated[int, Field(ge=1, le=63)]
# Ports have eight classes; one is for what stands for CNPs.
MOST_QUEUES = 7
Queues = Annotated[int, Field(ge=2, le=MOST_QUEUES)]

InputField = Literal["profile", "start_offset_ms"]


class InputValue(NamedTuple):
    """The value of a field, and the keys of the trials that it comes from."""

    value: Any
    trials: tuple[str, ...]


class JobFields(Strict):
    """The workers and times of a training job. Instants count from the trial's agreed start.

    A host that is named several times has as many workers. A job begins `start_offset_ms` (its time-shift) after it
    arrives. At `departs_ms` it stops at once; an unfinished iteration does not count.
    """

    profile: Any
    workers: Workers
    trainer: Trainer = DEFAULT
    flows: Flows = Field(default=1, description="connections from a worker to each that it sends to")
    iterations: Iterations | None = Field(default=None, description="of this job; the trial's unless given")
    arrives_ms: NotNegative = 0.0
    start_offset_ms: NotNegative = 0.0
    departs_ms: Positive | None = None
    jitter: Jitter = Field(default=0.005, description="standard deviation of computing time, as a share of it")
    transport: Transport
    priority: Priority | None = Field(
        default=None, description="its packets' DSCP: ports send those of a larger one first, and without one last"
    )
    # Runs of version 0.1 have it as `takes`, and a cell's `depends_on` as `needs`.
    inputs: dict[InputField, Name] = Field(
        default={},
        validation_alias=AliasChoices("inputs", "takes"),
        description="the variant whose trials measure a field's value; until then the field's own value stands in",
    )

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the hosts of its workers, each once."""
        return tuple(dict.fromkeys(self.workers))

    @property
    def begins_ms(self) -> float:
        """Return the start of its first iteration."""
        return self.arrives_ms + self.start_offset_ms

    @model_validator(mode="after")
    def _departs_after_it_began(self) -> Self:
        if self.departs_ms is not None and self.departs_ms <= self.begins_ms:
            raise ValueError(f"departs_ms after the job begins, at {self.begins_ms:g} ms")
        return self

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        return drop_defaults({"priority": None, "timetable": None}, handler(self))


class Job(JobFields):
    """A training job as declared. The experiment's profile and transport apply unless it has its own."""

    profile: Name


class CrossTraffic(Strict):
    """Traffic that belongs to no job, from one host to others.

    `consistent` and `burst` are Salamy's web-search loads (Algorithms 1 and 2), `iperf` is a
    fixed number of long-lived flows (section 3.2). The load is the payload asked for, of all receivers together.
    """

    model_config = ConfigDict(validate_by_alias=True)

    kind: Literal["consistent", "burst", "iperf"]
    sender: NodeName = Field(alias="from")
    receivers: Annotated[Tuple[NodeName], Field(min_length=1)] = Field(alias="to")
    load_gbps: Annotated[float, Field(ge=0, le=1e4)]
    transport: Transport = Transport(name="cubic")
    gaps: Literal["poisson-process", "poisson-distributed"] = Field(
        default="poisson-process",
        description="between flows of `consistent`: exponential, or Salamy's literal Poisson-distributed",
    )
    sizes_between: Literal["steps", "linear"] = Field(
        default="steps", description="of web-search sizes: the listed ones alone (Salamy), or all between them too"
    )
    volumes: Literal["drawn", "exact"] = Field(
        default="drawn",
        description="between bursts: what the scaled sizes draw (Algorithm 2), or the same bytes in every period",
    )
    connections: Literal["pooled", "fresh"] = Field(
        default="pooled",
        description="of web-search flows: those used last, with their windows, or one a flow, set up when it is due",
    )
    traffic_class: Literal["jobs", "own"] = Field(
        default="jobs",
        description="that it rides in: the one of jobs without a priority, or one of its own (on a rack)",
    )

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"traffic_class": "jobs"}, handler(self))

    @property
    def is_random(self) -> bool:
        """Return True if it sends flows that a trial's seed draws."""
        return self.kind != "iperf" and self.load_gbps > 0


class Tcp(Strict):
    """TCP settings of all hosts, for any congestion control. A testbed chooses the ones not given."""

    ecn: bool | None = Field(
        default=None, description="whether it answers to marks; what stands for RDMA does in any case"
    )
    tail_loss_probes: bool | None = Field(default=None, description="whether it sends again what may be a lost tail")
    delayed_acks: bool | None = Field(default=None, description="whether receivers may wait before they acknowledge")

    @property
    def sysctls(self) -> dict[str, int]:
        """Return the sysctls of Linux for these settings."""
        asked = {
            "net.ipv4.tcp_ecn": {True: 1, False: 0, None: None}[self.ecn],
            "net.ipv4.tcp_early_retrans": {True: 3, False: 0, None: None}[self.tail_loss_probes],
        }
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def route(self) -> dict[str, int]:
        """Return the attributes of `ip route` for these settings."""
        return {} if self.delayed_acks is None else {"quickack": int(not self.delayed_acks)}


class Capture(Strict):
    """Captures by tcpdump on some hosts during a trial: the beginnings of their packets, within budgets."""

    hosts: Annotated[Tuple[NodeName], Field(min_length=1)]
    snap_bytes: Annotated[int, Field(ge=64, le=65_535)] = Field(default=128, description="kept of each packet")
    budget_mb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200, description="raw files of a host and trial; the oldest packets make room"
    )
    keep_mb: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=2000, description="raw files of the whole run; the oldest trials' make room, their tables stay"
    )


class Treatment(Strict):
    """The fields that overlays may change.

    Everything that makes one trial, before profiles and topology are looked up.
    """

    topology: Name
    line_rate_gbps: Positive | None = Field(
        default=None, description="in place of the topology's own; unless given, the payload rate keeps its share of it"
    )
    payload_rate_gbps: Positive | None = Field(default=None, description="in place of the topology's own")
    profile: Name | None = Field(default=None, description="of every job that names none")
    resized: ProfileScaling | None = Field(default=None, description="what every job's profile is multiplied by")
    jobs: Annotated[dict[Name, Job], Field(min_length=1)]
    cluster: Cluster | None = Field(default=None, description="in place of jobs: a trace, and who places its jobs")
    cross_traffic: dict[Name, CrossTraffic] = Field(default={}, description="beside the jobs, from before they start")
    load_gbps: Annotated[float, Field(ge=0, le=1e4)] | None = Field(
        default=None, description="of all cross traffic that names none"
    )
    iterations: Iterations
    transport: Transport | None = Field(default=None, description="of every job; a job's own is merged over it")
    tcp: Tcp = Tcp()
    queue: QueueName | Literal["auto"] = Field(
        default="thresholds",
        description="at switch ports: marks between thresholds, a step, drop-tail, or `auto`: what transports declare",
    )
    priority_queues: Queues = Field(default=MOST_QUEUES, description="of a port; jobs beyond them share the last")
    one_job_at_a_time: bool = False
    cassini: Cassini | None = Field(
        default=None, description="jobs are shifted in time so that their demands interleave"
    )
    depends_on: Tuple[Name] = Field(default=(), description="variants whose trials must be done before")
    capture: Capture | None = Field(default=None, description="hosts whose packets are captured")

    @model_validator(mode="after")
    def _only_who_meets_is_shifted(self) -> Self:
        if self.cassini and self.one_job_at_a_time:
            raise ValueError("either cassini or one_job_at_a_time: who runs alone has no one to avoid")
        unknown = [name for name in (self.cassini.timetables if self.cassini else ()) if name not in self.jobs]
        if unknown:
            raise ValueError(f"timetables of jobs that there are: there is no {unknown[0]}")
        return self


class ClusterTreatment(Treatment):
    """A treatment whose jobs arrive by a trace."""

    cluster: Cluster
    jobs: dict[Name, Job] = Field(default={}, description="none")
    iterations: Iterations = Field(default=1, description="of no job: a trace says its own")

    @model_validator(mode="after")
    def _jobs_of_the_trace_alone(self) -> Self:
        others = {"jobs": self.jobs, "one_job_at_a_time": self.one_job_at_a_time, "cassini": self.cassini}
        for field, found in others.items():
            if found:
                expected = "cluster alone: its jobs come by its trace, and Cassini is a part of it"
                said = {"location": (field,), "found": f"{field} beside cluster", "expected": expected, "hint": None}
                raise PydanticCustomError("located", "{expected}", said)
        return self


TIMELINE = frozenset({"arrives_ms", "start_offset_ms", "departs_ms", "iterations", "inputs", "timetable"})
"""What places a job among others."""


class ResolvedJob(JobFields):
    """A training job with everything that it refers to. Trials under Cassini are given its timetable.

    A job of a cluster's trace may have one worker, which sends nothing. With fewer workers than it asked for, it has
    more iterations; in a window of a long trace it has no end.
    """

    profile: Profile
    workers: Annotated[Tuple[NodeName], Field(min_length=1)]
    iterations: Annotated[int, Field(ge=1)] | None = None
    arrives_ms: Annotated[float, Field(ge=0)] = 0.0
    departs_ms: Annotated[float, Field(gt=0)] | None = None
    timetable: Timetable | None = None

    @property
    def begins_ms(self) -> float:
        """Return the start of its first iteration, by its timetable if it has one."""
        comes_ms = super().begins_ms
        return comes_ms if self.timetable is None else comes_ms + self.timetable.early_ms(comes_ms)

    @property
    def held_timetable(self) -> Timetable | None:
        """Return the timetable by which its agents delay iterations."""
        return self.timetable if self.timetable and self.timetable.holds else None

    @property
    def as_document(self) -> dict[str, Any]:
        """Return the job as a file without other jobs has it; its profile by name."""
        declared = self.model_dump(mode="json", exclude=set(TIMELINE), exclude_none=True)
        return declared | {"profile": self.profile.name, "transport": self.transport.as_document}

    def transfers(self, phase: Phase) -> tuple[Transfer, ...]:
        """Return the transfers of one of its phases, by rank."""
        return phase.transfers(len(self.workers))

    @property
    def common_pattern(self) -> Pattern | None:
        """Return the one pattern by which all hosts of the job send equally in every phase; None without one."""
        sending = [phase for phase in self.profile.phases if phase.bytes]
        patterns = {phase.pattern for phase in sending}
        each_its_own = self.hosts == self.workers
        plain = len(patterns) == 1 and not any(phase.groups for phase in sending) and each_its_own
        return next((pattern for pattern in patterns if pattern in ALIKE), None) if plain else None

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of hosts (sender, receiver) of all transfers once, in the order of phases and ranks."""
        everything = (transfer for phase in self.profile.phases for transfer in self.transfers(phase))
        hosts = ((self.workers[each.sender], self.workers[each.receiver]) for each in everything)
        return tuple(dict.fromkeys(pair for pair in hosts if pair[0] != pair[1]))


class TrialSpec(Strict):
    """Everything that makes one trial, in the papers' units."""

    topology: Topology
    jobs: dict[Name, ResolvedJob]
    cluster: Cluster | None = None
    submitted: Tuple[SubmittedJob] = Field(default=(), description="the jobs in the file of a cluster's trace")
    cross_traffic: dict[Name, CrossTraffic] = Field(default={})
    iterations: Iterations
    tcp: Tcp = Tcp()
    queue: QueueName = "thresholds"
    priority_queues: Queues = MOST_QUEUES
    one_job_at_a_time: bool = False
    cassini: Cassini | None = None
    capture: Capture | None = None

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        of_jobs = {"queue": "thresholds", "priority_queues": MOST_QUEUES, "cassini": None}
        return drop_defaults({**of_jobs, "cluster": None, "submitted": []}, handler(self))

    @property
    def may_drop(self) -> bool:
        """Return True if ports may drop packets."""
        return self.queue == "drop-tail" or self.topology.queue == "lossy"

    @property
    def queue_of_priority(self) -> dict[int, int]:
        """Return the port queue of each priority. Queue 0 is served last, and serves packets without a priority.

        The highest priorities have a queue each while there are any; the others share the last. Without any priority
        there is one queue.
        """
        ranked = sorted({job.priority for job in self.jobs.values() if job.priority}, reverse=True)
        others = any(job.priority is None for job in self.jobs.values()) or bool(self.cross_traffic)
        own = min(len(ranked) if others else len(ranked) - 1, self.priority_queues - 1)
        return {priority: max(own - rank, 0) for rank, priority in enumerate(ranked)}

    @property
    def has_concurrent_jobs(self) -> bool:
        """Return True if several jobs run at once."""
        return (self.cluster is not None or len(self.jobs) > 1) and not self.one_job_at_a_time

    @property
    def transports(self) -> dict[str, Transport]:
        """Return all transports in use, by name; parameters are one user's."""
        return {user.transport.name: user.transport for user in self.users}

    @property
    def users(self) -> tuple[ResolvedJob | CrossTraffic | Cluster, ...]:
        """Return everything that has connections."""
        cluster = () if self.cluster is None else (self.cluster,)
        return *self.jobs.values(), *self.cross_traffic.values(), *cluster

    @property
    def cross_traffic_gbps(self) -> float:
        """Return the requested load of all cross traffic."""
        return sum(traffic.load_gbps for traffic in self.cross_traffic.values())

    @property
    def has_random_parts(self) -> bool:
        """Return True if the trial's seed draws anything: cross traffic, or a trace."""
        return self.cluster is not None or any(traffic.is_random for traffic in self.cross_traffic.values())

    def transport_of(self, host: str) -> Transport | None:
        """Return the transport of a host's connections; None if it has no part in the trial.

        It is its job's; else that of the cross traffic that it sends or receives, because DCQCN needs both ends of a
        connection.
        """
        traffics = self.cross_traffic.values()
        users: list[ResolvedJob | CrossTraffic] = [
            *(job for job in self.jobs.values() if host in job.workers),
            *(traffic for traffic in traffics if host == traffic.sender),
            *(traffic for traffic in traffics if host in traffic.receivers),
        ]
        return users[0].transport if users else None

    def iterations_of(self, job: str) -> int:
        """Return the number of a job's iterations, unless it departs before."""
        return self.jobs[job].iterations or self.iterations

    def hops(self, job: str) -> tuple[Hop, ...]:
        """Return each link and direction over which a job sends."""
        pairs = self.jobs[job].pairs
        return tuple(dict.fromkeys(hop for pair in pairs for hop in self.topology.path(*pair)))

    def bytes_by_hop(self, job: str, phase: Phase) -> dict[Hop, int]:
        """Return the payload bytes that a job sends over each link and direction in one of its phases."""
        own, found = self.jobs[job], dict[Hop, int]()
        for each in own.transfers(phase):
            for hop in self.topology.path(own.workers[each.sender], own.workers[each.receiver]):
                found[hop] = found.get(hop, 0) + each.bytes
        return found

    def with_one_job(self, job: str) -> "TrialSpec":
        """Return the trial without the other jobs. It begins with the job's arrival."""
        own = self.jobs[job]
        departs_ms = None if own.departs_ms is None else own.departs_ms - own.arrives_ms
        return self.model_copy(
            update={"jobs": {job: own.model_copy(update={"arrives_ms": 0.0, "departs_ms": departs_ms})}}
        )

    @property
    def has_inputs(self) -> bool:
        """Return True if any job has inputs from earlier trials or from Cassini."""
        return self.cassini is not None or any(job.inputs for job in self.jobs.values())

    def with_inputs(self, values: Mapping[str, Mapping[str, InputValue]]) -> "TrialSpec":
        """Return the trial with input values (job -> field -> value) in place of their placeholders."""
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
    """The study that reports on the runs, and its comparison. Studies are the folders of `analysis/studies`."""

    kind: Name | None = Field(default=None, description="a study; unless given, one that suits what varies")
    baseline: Level | None = Field(
        default=None,
        description="what speed-ups are over: a variant, or a level of `over`; unless given, the variant `fair`, else "
        "the first variant in which jobs meet, else the first level",
    )
    over: Name | None = Field(default=None, description="the factor along the x-axis, where the study has one")

    def x_factor(self, factors: Iterable[str]) -> str:
        """Return the factor along the x-axis.

        The requested one, else the first besides the variant, else the variant.
        """
        return self.over or next((name for name in factors if name != "variant"), "variant")


def _named(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Study = Annotated[StudyChoice, BeforeValidator(_named, json_schema_input_type=Name | StudyChoice)]


def _by_name(value: Any) -> Any:
    """Set the names of profiles or topologies from their keys."""
    if not isinstance(value, Mapping):
        return value
    return {name: {"name": name, **each} if isinstance(each, Mapping) else each for name, each in value.items()}


# A change of these leaves what is measured as it was.
ASIDE = ("name", "about", "source", "study", "exclude", "repetitions", "seed", "only", "scale", "dilation")


class ExperimentHeader(Strict):
    """The fields about the experiment as a whole, which overlays leave alone."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Name
    about: Text
    source: Text | None = None
    study: Study = StudyChoice()
    exclude: Tuple[Annotated[Excluded, Field(min_length=1)]] = Field(
        default=(), description="combinations of levels that are not run"
    )
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    only: Tuple[Name] = Field(default=(), description="variants that are run, with those that they need; else all")
    changes: dict[str, Any] = Field(
        default={}, alias="set", description="values by dotted path, over every level: what `--set` records"
    )
    scale: Annotated[float, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="by what a lab divides rates for it, unless `--scale` says otherwise"
    )
    dilation: Annotated[float, Field(ge=1, le=1000)] | None = Field(
        default=None, description="how many times a lab stretches time for it, unless `--dilation` says otherwise"
    )
    profiles: Annotated[dict[Name, Profile], BeforeValidator(_by_name)] = Field(
        default={}, description="of this experiment alone, by name; they go before the library's"
    )
    topologies: Annotated[dict[Name, Topology], BeforeValidator(_by_name)] = Field(
        default={}, description="of this experiment alone, by name; they go before the library's"
    )

    @property
    def altered_fields(self) -> dict[str, Any]:
        """Return the measured fields that `set` changes; empty if it also states what to expect of them."""
        if "expect" in self.changes:
            return {}
        return {path: value for path, value in self.changes.items() if path.partition(".")[0] not in ASIDE}


class Cell(Strict):
    """One combination of levels, and the trial that it asks for."""

    levels: dict[Name, Level]
    spec: TrialSpec
    depends_on: Tuple[Name] = Field(default=(), validation_alias=AliasChoices("depends_on", "needs"))

    @property
    def variant(self) -> str:
        """Return the level of the factor `variant`."""
        return str(self.levels.get("variant", ONLY_VARIANT))

    @property
    def dependencies(self) -> dict[tuple[str | int, ...], str]:
        """Return the variants whose trials come before, by the field that says so.

        Dependencies, Cassini, or a job's inputs.
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
    """An experiment with every combination merged, checked and resolved; `document` is its file as written."""

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
        """Return the factor along the x-axis."""
        return self.study.x_factor(self.factors)

    @property
    def baseline(self) -> Baseline:
        """Return the baseline of speed-ups. A variant that an older run names but lacks is ignored."""
        asked, levels = self.study.baseline, self.factors.get(self.x_factor, ())
        if asked is not None and asked in self.variants:
            return Baseline("variant", asked)
        if asked is not None and asked in levels:
            return Baseline(self.x_factor, asked)
        if len(self.variants) == 1 and levels:
            return Baseline(self.x_factor, levels[0])
        meeting = (cell.variant for cell in self.cells if not cell.spec.one_job_at_a_time)
        return Baseline("variant", FAIR if FAIR in self.variants else next(meeting, self.variants[0]))

    @property
    def transports(self) -> dict[str, Transport]:
        """Return all transports in use, by name."""
        return {name: transport for cell in self.cells for name, transport in cell.spec.transports.items()}

    @property
    def probes(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """Return hosts of workers, each with a command that fails there if it lacks a requirement of their trainer."""
        jobs = [job for cell in self.cells for job in cell.spec.jobs.values()]
        needed = ((job, probe) for job in jobs for probe in (job.trainer.probe, job.trainer.scheduled and SLURM_PROBE))
        return frozenset((host, probe) for job, probe in needed if probe for host in job.workers)

    @property
    def trial_count(self) -> int:
        """Return the number of trials of a run."""
        return self.repetitions * sum(len(cell.spec.jobs) if cell.spec.one_job_at_a_time else 1 for cell in self.cells)
