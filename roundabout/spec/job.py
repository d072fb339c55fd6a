# SPDX-License-Identifier: Apache-2.0
"""Models of a training job: as declared, and with its profile resolved."""

from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AliasChoices, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from roundabout.spec.base import Name, NodeName, NotNegative, Positive, Strict, Tuple, drop_defaults
from roundabout.spec.cassini import Timetable
from roundabout.spec.patterns import ALIKE, Pattern, Transfer
from roundabout.spec.priority_queues import Priority
from roundabout.spec.profile import Phase, Profile
from roundabout.spec.routing import Flow, FlowPort, source_port
from roundabout.spec.topology import Hop, Topology
from roundabout.spec.trainers import DEFAULT, Trainer
from roundabout.spec.transports import Transport

Jitter = Annotated[float, Field(ge=0, lt=1)]
Flows = Annotated[int, Field(ge=1, le=64)]
MAX_ITERATIONS = 100_000  # limit for a job; the fluid engine simulates some 7,000 a second, so more take minutes
Iterations = Annotated[int, Field(ge=1, le=MAX_ITERATIONS)]
Workers = Annotated[Tuple[NodeName], Field(min_length=2)]
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
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        unsaid: dict[str, Any] = {"priority": None, "timetable": None, "gpus": [], "source_ports": []}
        return drop_defaults(unsaid, handler(self))


class Job(JobFields):
    """A training job as declared. The experiment's profile and transport are its defaults."""

    profile: Name = Field(description="name of the job's profile; default: the experiment's")


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

        Where all flows between two hosts take one path, there is one entry for all of them. If packets of a flow take
        different paths, its entry is one of them.
        """
        return tuple(topology.path(*flow) for flow in self.flows_of(name, transfer, topology))

    def flows_of(self, name: str, transfer: Transfer, topology: Topology) -> tuple[Flow, ...]:
        """Return a transfer's flows, or one where all flows between two hosts take one path; `name` is the job's."""
        ranks, numbers = (transfer.sender, transfer.receiver), self.routed_flows(transfer, topology)
        return tuple(self.flow(name, *ranks, number, topology) for number in numbers)

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
        own, other = (number + self.gpu(rank) for rank in (sender, receiver))
        return Flow(*hosts, port, (other if topology.crosses_nvlink else own, other))

    @cached_property
    def _chosen_ports(self) -> dict[tuple[int, int, int], int]:
        return {(each.sender, each.receiver, each.number): each.port for each in self.source_ports}

    def gpu(self, rank: int) -> int:
        """Return the number of a worker's GPU in its host, which is that of the NIC beside it."""
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
