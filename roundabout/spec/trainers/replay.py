# SPDX-License-Identifier: Apache-2.0
"""Sleeps where a job would compute, and sends real bytes where it would communicate: trainers/replay.

Over TCP, or where hosts can and the job's transport is their NICs' by RDMA.
"""

from typing import ClassVar, Literal

from roundabout.spec.training.trainer import Launcher, Task


class Trainer(Launcher):
    """Plays a job by its profile."""

    program: ClassVar[str] = "build/bin/replay"
    rdma_program: ClassVar[str | None] = "build/bin/replay-rdma"
    listens: ClassVar[bool] = True
    name: Literal["replay"] = "replay"

    def argv(self, task: Task) -> tuple[str, ...]:
        """See `replay --help`."""
        return (self.on_host(task), "--rank", str(task.rank), "--job", task.job_json)
