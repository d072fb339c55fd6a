# SPDX-License-Identifier: Apache-2.0
"""The base of trainers that really train: their parameters, and the models that they know by name."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Strict, Text
from roundabout.spec.profile import Profile
from roundabout.spec.reader.yaml_source import read_document
from roundabout.spec.training.launch import Launch, launch_prefix
from roundabout.spec.training.trainer import BaseTrainer, Task

Backend = Literal["gloo", "nccl"]
Batch = Annotated[int, Field(gt=0, le=1_000_000)]
RAN: frozenset[Backend] = frozenset({"gloo"})
"""The backends by which this project has run any trainer at all."""
EXAMPLES = 16  # of a batch where no model says how many
MODELS = Path(__file__).with_name("training_models.yaml")
PYTORCH = {"torch": ("PyTorch", "./bootstrap training")}

WITHOUT_KINETO = """(
    f"{sys.executable} has PyTorch {torch.__version__} without Kineto, expected one that can record: name another "
    "interpreter by the trainer's `python`, or leave its `record` out")"""


class Model(Strict):
    """A model of Table 4.2: the table's batches and memory, its shape as host programs know it, and its parameters."""

    batch: Annotated[tuple[int, int], Field(strict=False)]
    memory_mb: Annotated[tuple[int, int], Field(strict=False)]
    parameters: int
    shape: dict[str, Any]
    source: Text | None = None
    guess: Text | None = None

    @property
    def kind(self) -> str:
        """Return the kind of network: vgg, resnet, bert, gpt or dlrm."""
        return str(self.shape["kind"])


@cache
def read_models() -> dict[str, Model]:
    """Return the models of training_models.yaml, by name."""
    return {name: Model.model_validate(told) for name, told in read_document(MODELS).root.items()}


class Training(BaseTrainer):
    """A trainer that really trains. A subclass has its program, kinds of models, and requirements."""

    kinds: ClassVar[frozenset[str]]
    needs: ClassVar[dict[str, tuple[str, str]]] = PYTORCH
    """Python's modules that must be there: what they are called, and how one gets them."""
    model: Text | None = Field(
        default=None, description="of Table 4.2; without one a network as large as the profile's bytes"
    )
    batch: Batch | None = Field(
        default=None, description="examples a worker and iteration; 16, or the least that Table 4.2 has of the model"
    )
    backend: Backend | None = Field(
        default=None, description="what carries gradients: NCCL where hosts have GPUs, and gloo else"
    )
    paced: bool = Field(
        default=True, description="whether computing takes as long as the profile says, as on an accelerator, or less"
    )
    launch: Launch = Field(
        default="direct",
        description="whether workers are started by themselves, by their hosts' torchrun, or through Slurm",
    )
    python: Text = Field(default="/usr/bin/python3", description="of hosts, which has what it needs")
    record: Literal["kineto"] | None = Field(
        default=None,
        description="also record iterations, but for the first, by PyTorch's own profiler (docs/how-to/records.md)",
    )

    @field_validator("model")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        known = [each for each, model in read_models().items() if model.kind in cls.kinds]
        if name is not None and name not in known:
            raise ValueError(f"one of {', '.join(known)}")
        return name

    @model_validator(mode="after")
    def _batch_in_range(self) -> Self:
        if self.model is None:
            return self
        least, most = read_models()[self.model].batch
        if not least <= self.examples <= most:
            expected = f"{least} to {most}, as Table 4.2 has for {self.model}"
            raise field_error("batch", self.examples, expected)
        return self

    @property
    def examples(self) -> int:
        """Return the examples of a worker and iteration."""
        return self.batch or (EXAMPLES if self.model is None else read_models()[self.model].batch[0])

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the program's arguments; see its `--help`."""
        start = launch_prefix(self.launch, self.python, self.path_on_host(task), task)
        told = ("--rank", str(task.rank), "--job", task.job_json, "--batch", str(self.examples))
        shape = ("--model", json.dumps(read_models()[self.model].shape, separators=(",", ":"))) if self.model else ()
        backend = ("--backend", self.backend) if self.backend else ()
        record = ("--record", self.record) if self.record else ()
        return (*start, *told, *shape, *backend, *record, *(("--paced",) if self.paced else ()))

    @property
    def probe(self) -> tuple[str, ...]:
        """Return a command that finds the interpreter's requirements without loading them, and for NCCL a GPU."""
        lines = ["import importlib.util, sys", *(_found(*each) for each in self.needs.items())]
        if self.backend == "nccl":
            lines += ["import torch", 'torch.cuda.is_available() or sys.exit("found no GPU: say `backend: gloo`")']
        if self.record:
            lines += ["import torch", f"torch.autograd.kineto_available() or sys.exit({WITHOUT_KINETO})"]
        return (self.python, "-c", "\n".join(lines))

    @property
    def nccl(self) -> bool:
        """Return True if `backend` is NCCL. A worker that chooses NCCL by itself gets no settings."""
        return self.backend == "nccl"

    @property
    def scheduled(self) -> bool:
        """Return True if `launch` is Slurm."""
        return self.launch == "slurm"

    def computing_ms(self, profile: Profile) -> float | None:
        """Return the profile's computing time, if the trainer is paced by it."""
        return profile.compute_ms if self.paced else None

    def describe_unproven(self, gpus: bool) -> str | None:
        """Describe the parts that were never run: everything over NCCL, and Table 4.2's models in full."""
        backend = self.backend or ("nccl" if gpus else "gloo")
        model = f" with {self.model}" if self.model else ""
        return f"{self.name} over {backend}{model}" if model or backend not in RAN else None


def _found(module: str, how: tuple[str, str]) -> str:
    name, remedy = how
    said = f"has no {name}: {remedy}, or name an interpreter that has it by the trainer's `python`"
    return f'importlib.util.find_spec("{module}") or sys.exit(f"{{sys.executable}} {said}")'


def field_error(field: str, found: object, expected: str) -> PydanticCustomError:
    """Return the error for a field that another field makes invalid."""
    return PydanticCustomError(
        "located", "{expected}", {"location": (field,), "found": str(found), "expected": expected}
    )
