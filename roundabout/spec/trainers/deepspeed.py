# SPDX-License-Identifier: Apache-2.0
"""Trainer `deepspeed`: a network that DeepSpeed divides among workers (trainers/torch/with_deepspeed.py)."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from roundabout.spec.profile import Profile
from roundabout.spec.training.launch import field_error
from roundabout.spec.training.trainer import Task
from roundabout.spec.training.training_spec import PYTORCH, Training


class Trainer(Training):
    """Data, pipeline, tensor or hybrid parallelism with DeepSpeed, by `parallel`."""

    program: ClassVar[str] = "trainers/torch/with_deepspeed.py"
    kinds: ClassVar[frozenset[str]] = frozenset({"gpt"})
    needs: ClassVar[dict[str, tuple[str, str]]] = {
        **PYTORCH,
        "deepspeed": ("DeepSpeed", "DS_BUILD_OPS=0 pip install deepspeed"),
    }
    name: Literal["deepspeed"]
    parallel: Literal["data", "pipeline", "tensor", "hybrid"] = Field(
        default="pipeline",
        description="kind of parallelism; `hybrid` is pipeline and tensor parallelism by two workers each",
    )
    micro_batches: Annotated[int, Field(gt=0, le=1000)] = Field(
        default=4, description="micro-batches of a batch in a pipeline; a guess, more of them shorten an iteration"
    )

    @model_validator(mode="after")
    def _batch_in_micro_batches(self) -> Self:
        if self.examples % self.steps:
            raise field_error("micro_batches", self.micro_batches, f"a divisor of the batch, {self.examples}")
        return self

    @property
    def steps(self) -> int:
        """Return the number of micro-batches of a batch. It is 1 without a pipeline."""
        return self.micro_batches if self.parallel in ("pipeline", "hybrid") else 1

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the worker's command line, with the kind of parallelism."""
        return (*super().argv(task), "--parallel", self.parallel, "--micro-batches", str(self.steps))

    def computing_ms(self, profile: Profile) -> float | None:
        """Return the expected computing time of an iteration, in ms.

        None for a pipeline, because its stages wait for each other.
        """
        return super().computing_ms(profile) if self.parallel in ("data", "tensor") else None
