# SPDX-License-Identifier: Apache-2.0
"""Trainer `horovod`: a network with Horovod's DistributedOptimizer (trainers/torch/with_horovod.py)."""

from typing import ClassVar, Literal

from roundabout.spec.training.trainer import Task
from roundabout.spec.training.training_spec import PYTORCH, Training


class Trainer(Training):
    """Data parallelism: each worker has the whole network. Gradients are all-reduced in fusion buffers."""

    program: ClassVar[str] = "trainers/torch/with_horovod.py"
    kinds: ClassVar[frozenset[str]] = frozenset({"vgg", "resnet", "bert", "gpt"})
    needs: ClassVar[dict[str, tuple[str, str]]] = {
        **PYTORCH,
        "horovod": ("Horovod", "HOROVOD_WITH_PYTORCH=1 pip install horovod"),
    }
    name: Literal["horovod"]

    def naming(self, task: Task) -> tuple[str, ...]:
        """Return the option that names the host by the worker's address, to which Horovod 0.28 connects."""
        return ("--host-name", task.job["workers"][task.rank]["address"])
