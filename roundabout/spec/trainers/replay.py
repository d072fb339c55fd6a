# SPDX-License-Identifier: Apache-2.0
"""Sleeps where a job would compute, and sends real bytes where it would communicate: trainers/replay."""

from typing import Literal

from roundabout.spec.trainer import Launcher, Task


class Trainer(Launcher):
    """Plays a job by its profile."""

    name: Literal["replay"] = "replay"

    def argv(self, task: Task) -> tuple[str, ...]:
        """See `replay --help`."""
        return (str(task.programs / "bin" / "replay"), "--rank", str(task.rank), "--job", task.job_json)
