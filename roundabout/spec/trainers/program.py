# SPDX-License-Identifier: Apache-2.0
"""Trainer `program`: any command, whose iterations are parsed from its output (trainers/program/run_program.py)."""

import json
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from roundabout.spec.base import Positive, Text
from roundabout.spec.training.launch import LaunchedTrainer, field_error
from roundabout.spec.training.output_patterns import find_pattern
from roundabout.spec.training.trainer import Task
from roundabout.spec.training.training_spec import User

PYTHON = "/usr/bin/python3"


class Trainer(LaunchedTrainer):
    """A trainer that runs a command on the job's hosts, and reports lines of its output as iterations."""

    program: ClassVar[str] = "trainers/program/run_program.py"
    plays_profile: ClassVar[bool] = False
    name: Literal["program"]
    command: Text = Field(description="command of bash, which each worker runs at the start of the job")
    pattern: Text = Field(
        description="lines that report an iteration: nccl-tests, perftest-bw, perftest-lat, megatron, torchtitan, or a "
        "regular expression with named groups"
    )
    file: Annotated[str, StringConstraints(pattern=r"^/", max_length=4000)] | None = Field(
        default=None, description="path of a file to which the command adds these lines; default: its output"
    )
    reporter: Literal["first", "last"] = Field(
        default="first", description="worker whose lines are the job's iterations"
    )
    once: bool = Field(
        default=False, description="whether the first worker alone runs the command, as mpirun and srun require"
    )
    skip: Annotated[int, Field(ge=0, le=100_000)] = Field(
        default=0, description="number of these lines at the beginning that are warm-up"
    )
    startup_s: Positive = Field(default=120.0, description="time limit from the job's start to its first iteration")
    backend: Literal["nccl"] | None = Field(
        default=None, description="`nccl`: the command gets NCCL's settings, and NCCL's log is checked"
    )
    user: User = Field(default="nobody", description="user on the hosts that runs the command, if root starts it")

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, pattern: str) -> str:
        find_pattern(pattern)
        return pattern

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        if self.once and self.reporter == "last":
            raise field_error("reporter", self.reporter, "first, because `once` lets no other worker run the command")
        if self.launch == "torchrun":
            raise field_error("launch", self.launch, "direct or slurm: the command itself can begin with torchrun")
        if self.once and self.image:
            expected = "none with `once`, because mpirun and srun start processes outside of it on other hosts"
            raise field_error("image", self.image, expected)
        return self

    @property
    def nccl(self) -> bool:
        """Return True if `backend` names NCCL."""
        return self.backend == "nccl"

    @property
    def uses_rails(self) -> bool:
        """Return True, because the command itself chooses its NICs."""
        return True

    @property
    def startup_limit_s(self) -> float:
        """Return the time limit of the first iteration."""
        return self.startup_s

    def describe_unproven(self, gpus: bool) -> str | None:  # noqa: ARG002 - as its base
        """Describe NCCL as a part that the project has never run with this trainer."""
        return f"{self.name} over nccl" if self.nccl else None

    def reporters(self, workers: int) -> Sequence[int]:
        """Return the rank of the worker that reports the job's iterations."""
        return [0 if self.reporter == "first" else workers - 1]

    def nccl_ranks(self, workers: int, rank: int) -> Sequence[int]:
        """Return all ranks for a first worker that alone runs the command, and none for the others."""
        if not self.once:
            return super().nccl_ranks(workers, rank)
        return range(workers) if self.nccl and rank == 0 else []

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the command line of one worker. See the program's docstring for its arguments."""
        runs, reports = not self.once or task.rank == 0, task.rank in self.reporters(len(task.job["workers"]))
        options = {
            "command": self.command if runs else None,
            "pattern": find_pattern(self.pattern) if reports else None,
            "file": self.file,
            "skip": self.skip,
            "startup_s": self.startup_s,
        }
        launcher = (PYTHON, str(task.programs / "bin" / "worker_launcher.py"), "--user", self.user)
        return (*launcher, PYTHON, self.path_on_host(task), str(task.rank), task.job_json, json.dumps(options))
