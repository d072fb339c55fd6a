# SPDX-License-Identifier: Apache-2.0
"""The base of trainers: a name, parameters, and the command line of one worker."""

import inspect
import json
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, ClassVar, NamedTuple

from roundabout.core import paths
from roundabout.spec.base import Strict
from roundabout.spec.profile import Profile


class Task(NamedTuple):
    """One worker of a job: the job's description (trainers/PROTOCOL.md) and the worker's rank.

    `programs` is the folder on the host whose subfolder `bin` has the programs. With `rdma`, the job sends by RDMA.
    """

    job: dict[str, Any]
    rank: int
    programs: PurePath
    rdma: bool = False

    @property
    def job_json(self) -> str:
        """Return the job's description as JSON. The text is the same for all workers of the job."""
        return json.dumps(self.job, separators=(",", ":"), allow_nan=False)


class BaseTrainer(Strict):
    """The base of trainers: a program that runs one worker of a job by trainers/PROTOCOL.md, and its parameters."""

    program: ClassVar[str]
    """Path of the worker's program, relative to the tree or to the plugin folder that contains this class."""
    rdma_program: ClassVar[str | None] = None
    """Path of the program, listed in programs.yaml, that replaces `program` for RDMA. None: RDMA is not supported."""
    listens: ClassVar[bool] = False
    """True if workers accept connections. Such workers first get a secret of the trial (trainers/PROTOCOL.md)."""
    binds_source_ports: ClassVar[bool] = False
    """True if connections have the source ports of the job's description, so that flows can have routes."""
    plays_profile: ClassVar[bool] = True
    """True if iterations follow the job's profile, so that models of the profile describe them."""
    plays_trees: ClassVar[bool] = False
    """True if workers read the channels and feeders of transfers in the job's description, which trees need."""
    name: str

    @classmethod
    def source(cls) -> Path:
        """Return the path of the program on this machine, in the tree or in a plugin folder."""
        folder = Path(inspect.getfile(cls)).resolve().parents[3]
        return (paths.ROOT if folder == paths.PACKAGES else folder) / cls.program

    @classmethod
    def path_on_host(cls, task: Task) -> str:
        """Return the path of the program on a worker's host. With RDMA, return that of `rdma_program`."""
        program = (task.rdma and cls.rdma_program) or cls.program
        return str(task.programs / "bin" / PurePath(program).name)

    @property
    def nccl(self) -> bool:
        """Return True if the workers use NCCL, so that they need NCCL's settings and a check of its log."""
        return False

    @property
    def uses_rails(self) -> bool:
        """Return True if workers can send by every NIC of their host."""
        return self.binds_source_ports or self.nccl

    def nccl_ranks(self, workers: int, rank: int) -> Sequence[int]:  # noqa: ARG002 - of those that start others
        """Return the ranks whose NCCL logs to standard error of the worker `rank`, of a job with so many workers."""
        return [rank] if self.nccl else []

    def reporters(self, workers: int) -> Sequence[int]:
        """Return the ranks of the workers that report iterations, of a job with so many workers."""
        return range(workers)

    @property
    def startup_limit_s(self) -> float:
        """Return the time that workers need from the job's start to the beginning of their first iteration, at most."""
        return 0.0

    @property
    def scheduled(self) -> bool:
        """Return True if Slurm starts the workers (launch.py)."""
        return False

    @property
    def image_probe(self) -> tuple[str, ...] | None:
        """Return a command that fails on a host that cannot start the workers' image (launch.py). None without one."""
        return None

    def container(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 - of those in images
        """Return the words before a worker's command that put it into an image, after those of Slurm's step."""
        return ()

    def computing_ms(self, profile: Profile) -> float | None:  # noqa: ARG002 - of those that really compute
        """Return the expected computing time of an iteration, in ms, or None if it is unknown.

        A longer measured time means a lack of CPU time.
        """
        return None

    @property
    def probe(self) -> tuple[str, ...] | None:
        """Return a command that fails on a host that lacks a requirement of this trainer, and prints its name.

        Return None if the trainer has no requirements.
        """
        return None

    def describe_unproven(self, gpus: bool) -> str | None:  # noqa: ARG002 - of those that use them
        """Describe the parts of this trainer that the project has never run on hosts with or without GPUs.

        Return None if the project has run all parts.
        """
        return None

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the command line of one worker on its host."""
        raise NotImplementedError
