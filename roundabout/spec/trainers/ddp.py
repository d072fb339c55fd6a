# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with PyTorch's DistributedDataParallel over gloo, on CPUs: trainers/torch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from roundabout.spec.base import Text
from roundabout.spec.profile import Profile
from roundabout.spec.trainer import Launcher, Task


class Trainer(Launcher):
    """Really trains; its gradients are as many bytes as the profile all-reduces."""

    program: ClassVar[str] = "trainers/torch/ddp.py"
    name: Literal["ddp"]
    batch: Annotated[int, Field(gt=0, le=1_000_000)] = Field(default=16, description="examples a worker and iteration")
    paced: bool = Field(
        default=True, description="whether computing takes as long as the profile says, as on an accelerator, or less"
    )
    python: Text = Field(default="/usr/bin/python3", description="of hosts, which has PyTorch")

    def argv(self, task: Task) -> tuple[str, ...]:
        """See `ddp.py --help`."""
        paced = ("--paced",) if self.paced else ()
        told = ("--rank", str(task.rank), "--job", task.job_json)
        return (self.python, self.on_host(task), *told, "--batch", str(self.batch), *paced)

    def computing_ms(self, profile: Profile) -> float | None:
        """The profile's, where that is kept to."""
        return profile.compute_ms if self.paced else None
