# SPDX-License-Identifier: Apache-2.0
"""A trace whose jobs are of several types: how each type computes and communicates, and on how many GPUs."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Name, Positive, Strict, Tuple

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Bytes = Annotated[float, Field(ge=0, le=1e15)]


class JobType(Strict):
    """A type of training job. Workers leave phases together, but stages begin their rings one by one.

    Workers are ranked stage by stage. In a stage they form `rings` rings, of every `rings`-th worker. An iteration
    computes, exchanges activations between stages, and ends with all rings' all-reduce. With `exchanges` it alternates
    that many times between computing and an all-to-all of all workers.
    """

    weight: Positive = Field(default=1.0, description="relative frequency")
    gpus: Annotated[Tuple[Count], Field(min_length=1)] = Field(description="numbers of GPUs, all equally likely")
    compute_ms: Positive = Field(description="computing before a communication: of a microbatch, where it has stages")
    rings: Count = Field(default=1, description="rings of a stage; the largest stride between neighbors")
    ring_bytes: Bytes = Field(description="bytes that a ring reduces; each worker of n sends 2 (n-1)/n of them")
    exchanges: Annotated[int, Field(ge=0, le=1000)] = Field(default=0, description="all-to-alls of an iteration")
    exchange_bytes: Bytes = Field(default=0, description="bytes that all workers send together in an all-to-all")
    stages: Count = Field(default=1, description="stages of a pipeline")
    microbatches: Count = Field(default=1, description="microbatches that pass through the stages")
    activation_bytes: Bytes = Field(default=0, description="bytes of a microbatch from a worker to the next stage")

    @model_validator(mode="after")
    def _exchanges_without_stages(self) -> Self:
        if self.exchanges and (self.stages > 1 or min(self.gpus) < 2):
            raise PydanticCustomError(
                "located",
                "{expected}",
                {"location": ("exchanges",), "found": self.exchanges, "expected": "0 with `stages` or with one GPU"},
            )
        return self


class JobMix(Strict):
    """Jobs of several types that arrive as a Poisson process, each in its own number of GPUs.

    The jobs wait in one queue. Their slowdowns are what is computed; iterations are not stored.
    """

    kind: Literal["mix"]
    types: Annotated[dict[Name, JobType], Field(min_length=1)] = Field(description="types of jobs, by name")
    load: Annotated[float, Field(gt=0, le=10)] = Field(
        description="share of busy GPUs if no job waited, met another on the network, or had bubbles in its pipeline"
    )
    jobs: Annotated[int, Field(ge=1, le=100_000)] = Field(description="number of jobs")
    iterations: Annotated[tuple[Count, Count], Field(strict=False)] = Field(
        description="least and most iterations of a job; all between them are equally likely"
    )

    @model_validator(mode="after")
    def _iterations_ascend(self) -> Self:
        least, most = self.iterations
        if least > most:
            found = {"location": ("iterations",), "found": f"{least}, {most}", "expected": "the smaller number first"}
            raise PydanticCustomError("located", "{expected}", found)
        return self
