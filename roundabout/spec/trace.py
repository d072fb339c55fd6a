# SPDX-License-Identifier: Apache-2.0
"""Models of a cluster's trace: the jobs and their arrivals. roundabout.models.cluster.traces turns it into requests.

`models` names models of roundabout/models/cluster/models.yaml, or sets of them. The seed draws omitted values: a model
(all equally likely), numbers of `workers` and `iterations` from their ranges, and a batch from the model's range.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Name, NotNegative, Positive, Strict, Text, Tuple, drop_defaults
from roundabout.spec.job_mix import JobMix

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Jobs = Annotated[int, Field(ge=1, le=100_000)]


class Range(Strict):
    """A range of whole numbers, including both ends."""

    least: Count = Field(description="smallest value")
    most: Count = Field(description="largest value")

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.least > self.most:
            raise ValueError("a least that is no more than the most")
        return self


class RandomJobs(Strict):
    """The distributions from which a seed draws jobs."""

    models: Annotated[Tuple[Name], Field(min_length=1)] = Field(
        default=("mixed",), description="names of models, or of sets of models; all models are equally likely"
    )
    workers: Range = Field(
        default=Range(least=1, most=12),
        description="number of GPUs; jobs of a trace's file outside this range are left out",
    )
    iterations: Range = Field(default=Range(least=200, most=1000), description="number of a job's iterations")
    batches: dict[Name, Count] = Field(
        default={}, description="examples for each GPU in an iteration, by model; default: drawn from the model's range"
    )

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"batches": {}, "state": "empty"}, handler(self))


class ListedJob(Strict):
    """A listed job of a trace. The seed draws omitted values."""

    model: Name | None = Field(default=None, description="name of the model")
    batch: Count | None = Field(default=None, description="examples for each GPU in an iteration")
    workers: Count | None = Field(default=None, description="number of GPUs")
    iterations: Count | None = Field(default=None, description="number of iterations")


List = Annotated[Tuple[ListedJob], Field(min_length=1)]


class Poisson(RandomJobs):
    """Jobs that arrive as a Poisson process (section 4.5.1), limited by number (`jobs`) or time (`minutes`).

    `load` is the average share of busy GPUs if every job had the network to itself and never waited.
    """

    kind: Literal["poisson"]
    load: Annotated[float, Field(gt=0, le=10)] = Field(
        description="share of busy GPUs if no job waited or met another on the network"
    )
    jobs: Jobs | None = Field(default=None, description="number of jobs")
    minutes: Positive | None = Field(default=None, description="time until the last arrival")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.jobs is None) == (self.minutes is None):
            raise ValueError("either jobs or minutes")
        return self


class Dynamic(RandomJobs):
    """Jobs that are present at the start, and others that arrive together (sections 4.5.1, 4.5.3 and 4.5.4)."""

    kind: Literal["dynamic"]
    present: List = Field(description="jobs that are present at the start")
    arriving: List = Field(description="jobs that arrive together, later")
    arrive_s: NotNegative = Field(
        default=60.0, description="arrival in seconds; a guess, because the thesis prints no instant"
    )
    state: Literal["empty", "fragmented"] = Field(
        default="empty",
        description="cluster at the start: the scheduler places the present jobs (`empty`), or the seed draws the GPUs "
        "of their workers (`fragmented`)",
    )


class Snapshot(RandomJobs):
    """Jobs that are all present at the start (sections 4.5.1 and 4.5.5)."""

    kind: Literal["snapshot"]
    jobs: List = Field(description="the jobs")


class RecordedTrace(RandomJobs):
    """A published trace of a real cluster: arrivals, GPUs and most durations. The seed draws models and batches."""

    file: Text = Field(description="path of the trace's file")
    jobs: Jobs | None = Field(default=None, description="number of jobs to use, from the first; default: all")
    compression: Annotated[float, Field(ge=1, le=100_000)] = Field(
        default=1.0,
        description="divisor of arrivals and durations: jobs meet as in the trace, and have fewer iterations",
    )

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"compression": 1.0}, handler(self))


class Philly(RecordedTrace):
    """Microsoft's Philly trace: cluster_job_log (USENIX ATC'19)."""

    kind: Literal["philly"]


class Lingjun(RecordedTrace):
    """Alibaba's Lingjun trace: job.csv of 2023 (SIGCOMM'24), with worker.csv beside it."""

    kind: Literal["lingjun"]


class Helios(RecordedTrace):
    """SenseTime's Helios trace: cluster_log.csv of 2020 of one cluster (SC'21)."""

    kind: Literal["helios"]


class Acme(RecordedTrace):
    """Shanghai AI Laboratory's Acme trace: trace_seren.csv or trace_kalos.csv of 2023 (NSDI'24)."""

    kind: Literal["acme"]


class AlibabaGpu2020(RecordedTrace):
    """Alibaba's GPU trace of 2020: pai_job_table.csv (NSDI'22), with pai_task_table.csv beside it."""

    kind: Literal["alibaba-gpu-2020"]


class AlibabaGpu2023(RecordedTrace):
    """Alibaba's GPU trace of 2023: openb_pod_list_default.csv (USENIX ATC'23), or another list of pods."""

    kind: Literal["alibaba-gpu-2023"]


KINDS: dict[str, type[BaseModel]] = {
    "poisson": Poisson,
    "mix": JobMix,
    "dynamic": Dynamic,
    "snapshot": Snapshot,
    "philly": Philly,
    "lingjun": Lingjun,
    "helios": Helios,
    "acme": Acme,
    "alibaba-gpu-2020": AlibabaGpu2020,
    "alibaba-gpu-2023": AlibabaGpu2023,
}
# Published traces that cannot be played: the file lacks what is named. Source: alibaba/clusterdata #257.
LACKS = {"alibaba-gpu-2026": "submission times"}


def _check_playable(trace: object) -> object:
    """Refuse a published trace that cannot be played. Other kinds are left to pydantic."""
    kind = trace.get("kind") if isinstance(trace, Mapping) else None
    if isinstance(kind, str) and kind in LACKS:
        context = {
            "location": ("kind",),
            "found": f"{kind!r}, a trace that has no {LACKS[kind]}",
            "expected": f"a trace that has {LACKS[kind]}: one of {', '.join(map(repr, KINDS))}",
        }
        raise PydanticCustomError("located", "{expected}", context)
    return trace


PlayedTrace = Poisson | Dynamic | Snapshot | Philly | Lingjun | Helios | Acme | AlibabaGpu2020 | AlibabaGpu2023
"""The traces whose allocations are played as a trial's jobs."""

Trace = Annotated[
    PlayedTrace | JobMix,
    Field(discriminator="kind"),
    BeforeValidator(_check_playable),
]


class SubmittedJob(Strict):
    """A job of a real trace: submission time, number of GPUs, and duration (`ran_s`) if known."""

    name: Name
    at_s: float
    gpus: Annotated[int, Field(ge=1)]
    ran_s: Annotated[float, Field(ge=0)] | None = None
