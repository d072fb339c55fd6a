# SPDX-License-Identifier: Apache-2.0
"""What every trainer is: a name, parameters of its own, and the command line of one worker."""

import inspect
import json
from pathlib import Path, PurePath
from typing import Any, ClassVar, NamedTuple

from roundabout.core import paths
from roundabout.spec.base import Strict
from roundabout.spec.profile import Profile


class Task(NamedTuple):
    """One worker's part of a job: the job as trainers/PROTOCOL.md describes it, and which of its workers this one is.

    `programs` is where the host has its programs; `bin` lies below it. With `rdma`, the job's bytes are to go by RDMA.
    """

    job: dict[str, Any]
    rank: int
    programs: PurePath
    rdma: bool = False

    @property
    def job_json(self) -> str:
        """The job's description; the same text for all of its workers."""
        return json.dumps(self.job, separators=(",", ":"), allow_nan=False)


class Launcher(Strict):
    """A program that plays or trains one worker of a job, and speaks trainers/PROTOCOL.md."""

    program: ClassVar[str]
    """What a host runs, by its path in the tree, or in the folder outside it in which the model lies as in the tree."""
    rdma_program: ClassVar[str | None] = None
    """What a host runs in its place where jobs' bytes go by RDMA, of programs.yaml; without one sockets are used."""
    listens: ClassVar[bool] = False
    """Whether its workers take connections: then each is told a secret of its trial first (trainers/PROTOCOL.md)."""
    name: str

    @classmethod
    def source(cls) -> Path:
        """The program on this machine. In the tree, programs.yaml lists it; from outside, runs copy it to hosts."""
        folder = Path(inspect.getfile(cls)).resolve().parents[3]
        return (paths.ROOT if folder == paths.PACKAGES else folder) / cls.program

    @classmethod
    def on_host(cls, task: Task) -> str:
        """The program on a host."""
        program = (task.rdma and cls.rdma_program) or cls.program
        return str(task.programs / "bin" / PurePath(program).name)

    @property
    def nccl(self) -> bool:
        """Whether its workers speak NCCL: then they are told its settings, and its log is held against them."""
        return False

    @property
    def scheduled(self) -> bool:
        """Whether its workers are started through Slurm (launch.py)."""
        return False

    def computing_ms(self, profile: Profile) -> float | None:  # noqa: ARG002 - of those that really compute
        """What an iteration's computing is to take, and longer only where CPU was short; None where none is done."""
        return None

    @property
    def probe(self) -> tuple[str, ...] | None:
        """A command that fails on hosts which lack what this trainer needs, and says what; None: it needs nothing."""
        return None

    def never_run(self, gpus: bool) -> str | None:  # noqa: ARG002 - of those that use them
        """What of it this project has never run itself, where hosts may have `gpus`, for reports; None: nothing."""
        return None

    def argv(self, task: Task) -> tuple[str, ...]:
        """The command line of one worker on its host."""
        raise NotImplementedError
