# SPDX-License-Identifier: Apache-2.0
"""The base of trainers: a name, parameters, and the command line of one worker."""

import inspect
import json
from pathlib import Path, PurePath
from typing import Any, ClassVar, NamedTuple

from roundabout.core import paths
from roundabout.spec.base import Strict
from roundabout.spec.profile import Profile


class Task(NamedTuple):
    """One worker's part of a job: the job as trainers/PROTOCOL.md describes it, and the worker's rank.

    `programs` is the host's folder of programs; `bin` lies below it. With `rdma`, the job's bytes go by RDMA.
    """

    job: dict[str, Any]
    rank: int
    programs: PurePath
    rdma: bool = False

    @property
    def job_json(self) -> str:
        """Return the job's description, the same text for all of its workers."""
        return json.dumps(self.job, separators=(",", ":"), allow_nan=False)


class BaseTrainer(Strict):
    """A program that replays or trains one worker of a job, and speaks trainers/PROTOCOL.md."""

    program: ClassVar[str]
    """What a host runs, by its path in the tree, or in the folder outside it in which the model lies as in the tree."""
    rdma_program: ClassVar[str | None] = None
    """What a host runs in its place where jobs' bytes go by RDMA, of programs.yaml; without one sockets are used."""
    listens: ClassVar[bool] = False
    """Whether its workers take connections: then each is told a secret of its trial first (trainers/PROTOCOL.md)."""
    name: str

    @classmethod
    def source(cls) -> Path:
        """Return the program on this machine. The tree's are listed in programs.yaml; plugins' are copied by runs."""
        folder = Path(inspect.getfile(cls)).resolve().parents[3]
        return (paths.ROOT if folder == paths.PACKAGES else folder) / cls.program

    @classmethod
    def path_on_host(cls, task: Task) -> str:
        """Return the program's path on a host."""
        program = (task.rdma and cls.rdma_program) or cls.program
        return str(task.programs / "bin" / PurePath(program).name)

    @property
    def nccl(self) -> bool:
        """Return True if its workers use NCCL; then they get its settings, and its log is checked."""
        return False

    @property
    def scheduled(self) -> bool:
        """Return True if its workers are started through Slurm (launch.py)."""
        return False

    def computing_ms(self, profile: Profile) -> float | None:  # noqa: ARG002 - of those that really compute
        """Return the expected computing time of an iteration, which only a lack of CPU lengthens; None without one."""
        return None

    @property
    def probe(self) -> tuple[str, ...] | None:
        """Return a command that fails on hosts without a requirement of this trainer, and names it.

        None without requirements.
        """
        return None

    def describe_unproven(self, gpus: bool) -> str | None:  # noqa: ARG002 - of those that use them
        """Describe the parts of this trainer that the project has never run, on hosts with `gpus`.

        None if all were run.
        """
        return None

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the command line of one worker on its host."""
        raise NotImplementedError
