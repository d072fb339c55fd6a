# SPDX-License-Identifier: Apache-2.0
"""Trainer `replay`: sleeps for computing phases and sends real bytes for communication (trainers/replay).

It sends over TCP, or by RDMA if the hosts and the job's transport support it.
"""

from typing import ClassVar, Literal

from roundabout.spec.training.trainer import BaseTrainer, Task


class Trainer(BaseTrainer):
    """A trainer that replays a job's profile without computing."""

    program: ClassVar[str] = "build/bin/replay"
    rdma_program: ClassVar[str | None] = "build/bin/replay-rdma"
    listens: ClassVar[bool] = True
    binds_source_ports: ClassVar[bool] = True
    plays_trees: ClassVar[bool] = True
    name: Literal["replay"] = "replay"

    def argv(self, task: Task) -> tuple[str, ...]:
        """Return the command line of `replay` for one worker. See `replay --help` for its arguments."""
        return (self.path_on_host(task), "--rank", str(task.rank), "--job", task.job_json)
