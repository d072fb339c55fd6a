# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with PyTorch's DistributedDataParallel over gloo, on CPUs: trainers/torch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from roundabout.spec.base import Text
from roundabout.spec.launch import Launch, started
from roundabout.spec.profile import Profile
from roundabout.spec.trainer import Launcher, Task

REMEDY = "./bootstrap training, or name an interpreter that has it by the trainer's `python`"
PROBE = f"""import importlib.util, sys
importlib.util.find_spec("torch") or sys.exit(f"{{sys.executable}} has no PyTorch: {REMEDY}")"""
RECORDS = f"""{PROBE}
import torch
torch.autograd.kineto_available() or sys.exit(
    f"{{sys.executable}} has PyTorch {{torch.__version__}} without Kineto, expected one that can record: name another "
    "interpreter by the trainer's `python`, or leave its `record` out")"""


class Trainer(Launcher):
    """Really trains; its gradients are as many bytes as the profile all-reduces."""

    program: ClassVar[str] = "trainers/torch/ddp.py"
    name: Literal["ddp"]
    batch: Annotated[int, Field(gt=0, le=1_000_000)] = Field(default=16, description="examples a worker and iteration")
    paced: bool = Field(
        default=True, description="whether computing takes as long as the profile says, as on an accelerator, or less"
    )
    launch: Launch = Field(
        default="direct", description="whether workers are started by themselves, or by their hosts' torchrun"
    )
    python: Text = Field(default="/usr/bin/python3", description="of hosts, which has PyTorch")
    record: Literal["kineto"] | None = Field(
        default=None,
        description="also record iterations, but for the first, by PyTorch's own profiler (docs/records.md)",
    )

    def argv(self, task: Task) -> tuple[str, ...]:
        """See `ddp.py --help`."""
        paced = ("--paced",) if self.paced else ()
        record = ("--record", self.record) if self.record else ()
        told = ("--rank", str(task.rank), "--job", task.job_json)
        return (
            *started(self.launch, self.python, self.on_host(task), task),
            *told,
            "--batch",
            str(self.batch),
            *record,
            *paced,
        )

    @property
    def probe(self) -> tuple[str, ...]:
        """Whether its interpreter has PyTorch, which is quicker found than loaded; where it shall record, Kineto."""
        return (self.python, "-c", RECORDS if self.record else PROBE)

    def computing_ms(self, profile: Profile) -> float | None:
        """The profile's, where that is kept to."""
        return profile.compute_ms if self.paced else None
