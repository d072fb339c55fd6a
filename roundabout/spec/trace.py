# SPDX-License-Identifier: Apache-2.0
"""A trace: the jobs that arrive at a cluster, and when. roundabout.models.cluster.traces makes requests of it.

Models are those of roundabout/models/cluster/models.yaml, or sets of them. Omitted values are drawn by the seed: a
model among `models` (all equally likely), a number of `workers` and of `iterations` from their ranges, a batch from the
model's.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from roundabout.spec.base import Name, NotNegative, Positive, Strict, Text, Tuple

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Jobs = Annotated[int, Field(ge=1, le=100_000)]


class Range(Strict):
    """Whole numbers between two ends, both included."""

    least: Count
    most: Count

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.least > self.most:
            raise ValueError("a least that is no more than the most")
        return self


class RandomJobs(Strict):
    """The distributions from which a seed draws jobs."""

    models: Annotated[Tuple[Name], Field(min_length=1)] = Field(
        default=("mixed",), description="models and sets of them, each model as likely as any other"
    )
    workers: Range = Field(
        default=Range(least=1, most=12), description="GPUs asked for; of a file's jobs, others are left out"
    )
    iterations: Range = Range(least=200, most=1000)


class ListedJob(Strict):
    """A job of a list. Omitted values are drawn."""

    model: Name | None = None
    batch: Count | None = Field(default=None, description="of a GPU")
    workers: Count | None = None
    iterations: Count | None = None


List = Annotated[Tuple[ListedJob], Field(min_length=1)]


class Poisson(RandomJobs):
    """Jobs that arrive as a Poisson process (section 4.5.1): `jobs` of them, or for some `minutes`.

    `load` is the average fraction of GPUs that serve active jobs, were each job alone on the network and never waiting.
    """

    kind: Literal["poisson"]
    load: Annotated[float, Field(gt=0, le=10)]
    jobs: Jobs | None = None
    minutes: Positive | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.jobs is None) == (self.minutes is None):
            raise ValueError("either jobs or minutes")
        return self


class Dynamic(RandomJobs):
    """Jobs that are present, and others that arrive all at once (sections 4.5.1, 4.5.3 and 4.5.4)."""

    kind: Literal["dynamic"]
    present: List
    arriving: List
    arrive_s: NotNegative = Field(default=60.0, description="when; a guess: no instant is printed")


class Snapshot(RandomJobs):
    """Jobs that are all present from the start (sections 4.5.1 and 4.5.5)."""

    kind: Literal["snapshot"]
    jobs: List


class RecordedTrace(RandomJobs):
    """A real trace, which gives arrivals, GPUs and mostly durations. Models and batches are drawn."""

    file: Text
    jobs: Jobs | None = Field(default=None, description="the first so many; all unless given")


class Philly(RecordedTrace):
    """Microsoft's cluster_job_log (USENIX ATC'19)."""

    kind: Literal["philly"]


class Lingjun(RecordedTrace):
    """Alibaba's job.csv of 2023 (SIGCOMM'24), with its worker.csv beside it."""

    kind: Literal["lingjun"]


class Helios(RecordedTrace):
    """SenseTime's cluster_log.csv of 2020, of one of its clusters (SC'21)."""

    kind: Literal["helios"]


class Acme(RecordedTrace):
    """Shanghai AI Laboratory's trace_seren.csv or trace_kalos.csv of 2023 (NSDI'24)."""

    kind: Literal["acme"]


class AlibabaGpu2020(RecordedTrace):
    """Alibaba's pai_job_table.csv of 2020 (NSDI'22), with its pai_task_table.csv beside it."""

    kind: Literal["alibaba-gpu-2020"]


class AlibabaGpu2023(RecordedTrace):
    """Alibaba's openb_pod_list_default.csv of 2023 (USENIX ATC'23), or another of its lists of pods."""

    kind: Literal["alibaba-gpu-2023"]


KINDS: dict[str, type[RandomJobs]] = {
    "poisson": Poisson,
    "dynamic": Dynamic,
    "snapshot": Snapshot,
    "philly": Philly,
    "lingjun": Lingjun,
    "helios": Helios,
    "acme": Acme,
    "alibaba-gpu-2020": AlibabaGpu2020,
    "alibaba-gpu-2023": AlibabaGpu2023,
}
Trace = Annotated[
    Poisson | Dynamic | Snapshot | Philly | Lingjun | Helios | Acme | AlibabaGpu2020 | AlibabaGpu2023,
    Field(discriminator="kind"),
]


class SubmittedJob(Strict):
    """A job of a real trace: its arrival, its GPUs, and its duration if known."""

    name: Name
    at_s: float
    gpus: Annotated[int, Field(ge=1)]
    ran_s: Annotated[float, Field(ge=0)] | None = None
