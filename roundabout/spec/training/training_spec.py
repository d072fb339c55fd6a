# SPDX-License-Identifier: Apache-2.0
"""The base of trainers that train a real network: their parameters, and the models known by name."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from roundabout.spec.base import Strict, Text
from roundabout.spec.profile import Profile
from roundabout.spec.reader.yaml_source import read_document
from roundabout.spec.training.launch import LaunchedTrainer, field_error, launch_prefix
from roundabout.spec.training.trainer import Task

User = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
Backend = Literal["gloo", "nccl"]
Batch = Annotated[int, Field(gt=0, le=1_000_000)]
RAN: frozenset[Backend] = frozenset({"gloo"})
"""The backends with which this project has run a trainer."""
EXAMPLES = 16  # default batch of a worker without a named model
MODELS = Path(__file__).with_name("training_models.yaml")
PYTORCH = {"torch": ("PyTorch", "./bootstrap training")}

WITHOUT_KINETO = """(
    f"{sys.executable} has PyTorch {torch.__version__} without Kineto, expected one that can record: name another "
    "interpreter by the trainer's `python`, or leave its `record` out")"""


class Model(Strict):
    """A model of Table 4.2. `batch` and `memory_mb` are the table's ranges; host programs read `shape`."""

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
    return {name: Model.model_validate(reported) for name, reported in read_document(MODELS).root.items()}


class Training(LaunchedTrainer):
    """A trainer that trains a real network. Subclasses define program, kinds of models, and requirements."""

    kinds: ClassVar[frozenset[str]]
    needs: ClassVar[dict[str, tuple[str, str]]] = PYTORCH
    """Required Python modules: import name -> (name for people, command that installs it)."""
    model: Text | None = Field(
        default=None,
        description="model of Table 4.2; default: a network with as many parameters as the profile's bytes",
    )
    batch: Batch | None = Field(
        default=None,
        description="examples of a worker in an iteration; default: 16, or the model's smallest in Table 4.2",
    )
    backend: Backend | None = Field(
        default=None, description="communication backend; default: nccl on hosts with GPUs, otherwise gloo"
    )
    paced: bool = Field(
        default=True, description="whether computing is extended to the profile's time; otherwise it takes its own time"
    )
    python: Text = Field(
        default="/usr/bin/python3", description="Python interpreter on the hosts, with the required modules"
    )
    user: User = Field(
        default="nobody",
        description="user on the hosts whose rights the workers have, if root starts them; it must be able to read the "
        "programs, the interpreter and its modules",
    )
    record: Literal["kineto"] | None = Field(
        default=None,
        description="also record all iterations after the first with PyTorch's profiler (docs/how-to/records.md)",
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
        """Return the number of examples of a worker in one iteration."""
        return self.batch or (EXAMPLES if self.model is None else read_models()[self.model].batch[0])

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the command line of one worker. See the program's `--help` for its arguments."""
        launcher = (self.python, str(task.programs / "bin" / "worker_launcher.py"), "--user", self.user)
        start = (*launcher, *self.naming(task), *launch_prefix(self.launch, self.python, self.path_on_host(task), task))
        reported = ("--rank", str(task.rank), "--job", task.job_json, "--batch", str(self.examples))
        shape = ("--model", json.dumps(read_models()[self.model].shape, separators=(",", ":"))) if self.model else ()
        backend = ("--backend", self.backend) if self.backend else ()
        record = ("--record", self.record) if self.record else ()
        return (*start, *reported, *shape, *backend, *record, *(("--paced",) if self.paced else ()))

    def naming(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 - of Horovod's
        """Return the launcher's options that rename the host for a worker."""
        return ()

    @property
    def probe(self) -> tuple[str, ...] | None:
        """Return a command that fails if a required module is missing, without importing it, or a GPU for NCCL.

        Return None for workers in an image, which has its own modules.
        """
        if self.image:
            return None
        lines = ["import importlib.util, sys", *(_found(*each) for each in self.needs.items())]
        if self.backend == "nccl":
            lines += ["import torch", 'torch.cuda.is_available() or sys.exit("found no GPU: say `backend: gloo`")']
        if self.record:
            lines += ["import torch", f"torch.autograd.kineto_available() or sys.exit({WITHOUT_KINETO})"]
        return (self.python, "-c", "\n".join(lines))

    @property
    def nccl(self) -> bool:
        """Return True if `backend` names NCCL. Without a named backend, a worker may use NCCL without its settings."""
        return self.backend == "nccl"

    def computing_ms(self, profile: Profile) -> float | None:
        """Return the profile's computing time, in ms, or None if the trainer is not paced by it."""
        return profile.compute_ms if self.paced else None

    def describe_unproven(self, gpus: bool) -> str | None:
        """Describe parts that the project has never run: NCCL, or a full model of Table 4.2. None if it ran all."""
        backend = self.backend or ("nccl" if gpus else "gloo")
        model = f" with {self.model}" if self.model else ""
        return f"{self.name} over {backend}{model}" if model or backend not in RAN else None


def _found(module: str, how: tuple[str, str]) -> str:
    name, remedy = how
    said = f"has no {name}: {remedy}, or name an interpreter that has it by the trainer's `python`"
    return f'importlib.util.find_spec("{module}") or sys.exit(f"{{sys.executable}} {said}")'
