# SPDX-License-Identifier: Apache-2.0
"""An experiment: what is run, under which variants, how often, and what the papers found."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from roundabout.spec.base import Level, Name, NodeName, NotNegative, Strict, Text, Tuple
from roundabout.spec.expectation import AnyExpectation, with_basis
from roundabout.spec.profile import Profile
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport

Jitter = Annotated[float, Field(ge=0, lt=1)]
Flows = Annotated[int, Field(ge=1, le=64)]
Iterations = Annotated[int, Field(ge=1, le=100_000)]
Workers = Annotated[Tuple[NodeName], Field(min_length=2)]

# The variant of an experiment that has no factor of that name.
ONLY_VARIANT = "base"


class Job(Strict):
    """A training job as declared: the experiment's profile and transport lie under its own."""

    profile: Name
    workers: Workers
    flows: Flows = Field(default=1, description="connections to each ring neighbour")
    start_offset_ms: NotNegative = 0.0
    jitter: Jitter = Field(default=0.005, description="standard deviation of computing time, as a share of it")
    transport: Transport


class CrossTraffic(Strict):
    """Traffic that belongs to no job, from one host to others.

    `consistent` and `burst` are the network requirements thesis' web-search loads (Algorithms 1 and 2), `iperf` is a
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
        description="between flows of `consistent`: exponential, or the thesis' literal Poisson-distributed",
    )


class Capture(Strict):
    """tcpdump on some hosts while a trial runs: the beginnings of their packets, within budgets."""

    hosts: Annotated[Tuple[NodeName], Field(min_length=1)]
    snap_bytes: Annotated[int, Field(ge=64, le=65_535)] = Field(default=128, description="kept of each packet")
    budget_mb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200, description="raw files of a host and trial; the oldest packets make room"
    )
    keep_mb: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=2000, description="raw files of the whole run; the oldest trials' make room, their tables stay"
    )


class Treatment(Strict):
    """What overlays may change: everything that one trial is made of, before profiles and topology are looked up."""

    topology: Name
    profile: Name | None = Field(default=None, description="of every job that names none")
    jobs: Annotated[dict[Name, Job], Field(min_length=1)]
    cross_traffic: dict[Name, CrossTraffic] = Field(default={}, description="beside the jobs, from before they start")
    load_gbps: Annotated[float, Field(ge=0, le=1e4)] | None = Field(
        default=None, description="of all cross traffic that names none"
    )
    iterations: Iterations
    transport: Transport | None = Field(default=None, description="of every job; a job's own is merged over it")
    one_job_at_a_time: bool = False
    needs: Tuple[Name] = Field(default=(), description="variants whose trials must be done before")
    capture: Capture | None = Field(default=None, description="hosts whose packets are captured")


class ResolvedJob(Strict):
    """A training job with everything that it refers to."""

    profile: Profile
    workers: Workers
    flows: Flows = 1
    start_offset_ms: NotNegative = 0.0
    jitter: Jitter = 0.005
    transport: Transport

    @property
    def ring(self) -> tuple[tuple[str, str], ...]:
        """The pairs of worker and ring neighbour that it sends to."""
        return tuple(zip(self.workers, (*self.workers[1:], self.workers[0]), strict=True))


class TrialSpec(Strict):
    """Everything that one trial is made of, in the papers' units."""

    topology: Topology
    jobs: dict[Name, ResolvedJob]
    cross_traffic: dict[Name, CrossTraffic] = Field(default={})
    iterations: Iterations
    one_job_at_a_time: bool = False
    capture: Capture | None = None

    @property
    def transports(self) -> dict[str, Transport]:
        """All transports in use, by name; parameters are some user's."""
        return {user.transport.name: user.transport for user in self.users}

    @property
    def users(self) -> tuple[ResolvedJob | CrossTraffic, ...]:
        """Everything that has connections."""
        return *self.jobs.values(), *self.cross_traffic.values()

    def transport_of(self, host: str) -> Transport | None:
        """What a host's connections use; None if it has no part in the trial.

        Its job's; else that of the cross traffic which it sends, or receives: DCQCN needs both ends of a connection.
        """
        traffics = self.cross_traffic.values()
        users: list[ResolvedJob | CrossTraffic] = [
            *(job for job in self.jobs.values() if host in job.workers),
            *(traffic for traffic in traffics if host == traffic.sender),
            *(traffic for traffic in traffics if host in traffic.receivers),
        ]
        return users[0].transport if users else None

    def only(self, job: str) -> "TrialSpec":
        """The same trial with the other jobs left out."""
        return self.model_copy(update={"jobs": {job: self.jobs[job]}})


def _one_or_many(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if isinstance(item, list | tuple) else [item] for key, item in value.items()}
    return value


Excluded = Annotated[
    dict[Name, Annotated[Tuple[Level], Field(min_length=1)]],
    BeforeValidator(_one_or_many, json_schema_input_type=dict[Name, Level | list[Level]]),
]


class StudyChoice(Strict):
    """Which study reports on the runs, and what it compares; the studies are the folders of `analysis/studies`."""

    kind: Name | None = Field(default=None, description="a study; unless given, one that suits what varies")
    baseline: Name = Field(default="fair", description="the variant that speed-ups are over")
    over: Name | None = Field(default=None, description="the factor along the x-axis, where the study has one")


def _named(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Study = Annotated[StudyChoice, BeforeValidator(_named, json_schema_input_type=Name | StudyChoice)]


class Header(Strict):
    """What a file says about the experiment as a whole; overlays leave it alone."""

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


class Cell(Strict):
    """One combination of levels, and the trial that it asks for."""

    levels: dict[Name, Level]
    spec: TrialSpec
    needs: Tuple[Name] = ()

    @property
    def variant(self) -> str:
        """The level of the factor `variant`."""
        return str(self.levels.get("variant", ONLY_VARIANT))


class Experiment(Header):
    """An experiment with every combination merged, checked and resolved; `document` is its file as written."""

    factors: dict[Name, Tuple[Level]]
    cells: Tuple[Cell]
    expect: Annotated[Tuple[AnyExpectation], BeforeValidator(with_basis)] = ()
    document: dict[str, Any]

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants in the order of the file."""
        return tuple(str(level) for level in self.factors.get("variant", (ONLY_VARIANT,)))

    @property
    def transports(self) -> dict[str, Transport]:
        """All transports in use, by name."""
        return {name: transport for cell in self.cells for name, transport in cell.spec.transports.items()}

    @property
    def trial_count(self) -> int:
        """How many trials a run takes."""
        return self.repetitions * sum(len(cell.spec.jobs) if cell.spec.one_job_at_a_time else 1 for cell in self.cells)
