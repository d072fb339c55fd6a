# SPDX-License-Identifier: Apache-2.0
"""Replays a profile: sleeps for computing, and sends real bytes for communication: trainers/replay.

Over TCP, or by RDMA if hosts and the job's transport support it.
"""

from typing import ClassVar, Literal

from roundabout.spec.training.trainer import BaseTrainer, Task


class Trainer(BaseTrainer):
    """A trainer that replays a job's profile."""

    program: ClassVar[str] = "build/bin/replay"
    rdma_program: ClassVar[str | None] = "build/bin/replay-rdma"
    listens: ClassVar[bool] = True
    name: Literal["replay"] = "replay"

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the arguments of `replay`; see its `--help`."""
        return (self.path_on_host(task), "--rank", str(task.rank), "--job", task.job_json)
