# SPDX-License-Identifier: Apache-2.0
"""A training job that is divided among servers of eight GPUs: by tensors, experts, layers and data."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from roundabout.spec.base import Positive, Strict, Text
from roundabout.spec.reader.yaml_source import read_document

JOBS = Path(__file__).with_name("parallel_jobs.yaml")
GPUS_PER_SERVER = 8
Count = Annotated[int, Field(ge=1, le=10_000)]


class ParallelJob(Strict):
    """A job on servers of eight GPUs with a NIC each. Tensors are divided within a server, experts within or across."""

    layer: Text = Field(description="model in layer_models.yaml whose layer was measured")
    share: Annotated[dict[Literal["tensors", "experts"], Count], Field(min_length=1, max_length=1)] = Field(
        description="share of a layer that one GPU has"
    )
    source: Text
    guess: Text
    precision: Literal["fp32", "tf32", "bf16-autocast", "bf16"] = "bf16"
    layers: Positive | None = Field(default=None, description="layers in all stages; default: the model's")
    tokens: Count = Field(default=4096, description="tokens of a GPU's micro-batch")
    micro_batches: Count = Field(description="micro-batches of an iteration, one after another")
    pipeline: Count = Field(default=1, description="stages, each of servers of its own")
    chunks: Count = Field(default=1, description="parts of a stage's layers in an interleaved schedule")
    data: Count = Field(default=1, description="replicas")
    copies: Positive | None = Field(
        default=None, description="servers that a token is sent to; default: as many as it has experts"
    )
    dispatch_bytes: Positive = Field(default=2, description="bytes of a number on its way to an expert")
    combine_bytes: Positive = Field(default=2, description="bytes of a number on its way back from an expert")
    gradient_bytes: Positive = Field(default=4, description="bytes of a gradient in the reduce-scatter")
    parameter_bytes: Positive = Field(default=2, description="bytes of a parameter in the all-gather")
    overlap: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1, description="share of computing during which a worker sends"
    )
    computing: Positive = Field(default=1, description="factor of the measured times of layers")
    nvlink_gbps: Positive = Field(default=3000, description="rate of collectives within a server, each way, Gbit/s")

    @model_validator(mode="after")
    def _fills_servers(self) -> Self:
        tensors, experts = self.share.get("tensors", GPUS_PER_SERVER), self.share.get("experts", GPUS_PER_SERVER)
        if tensors != GPUS_PER_SERVER or experts % GPUS_PER_SERVER:
            raise ValueError(f"tensors divided by {GPUS_PER_SERVER}, or experts by a multiple of {GPUS_PER_SERVER}")
        if self.servers == 1:
            raise ValueError("two servers at least: a job within one server sends nothing")
        return self

    @property
    def expert_servers(self) -> int:
        """Return the number of servers among which the experts of a layer are divided."""
        return self.share.get("experts", GPUS_PER_SERVER) // GPUS_PER_SERVER

    @property
    def servers(self) -> int:
        """Return the number of the job's servers."""
        return self.pipeline * self.data * self.expert_servers

    def with_fields(self, fields: Mapping[str, Any]) -> "ParallelJob":
        """Return the job with other values of some fields. Raises ValidationError."""
        return ParallelJob.model_validate({**self.model_dump(), **fields})


@cache
def read_parallel_jobs() -> dict[str, ParallelJob]:
    """Return the jobs of parallel_jobs.yaml, by name."""
    return {name: ParallelJob.model_validate(reported) for name, reported in read_document(JOBS).root.items()}
