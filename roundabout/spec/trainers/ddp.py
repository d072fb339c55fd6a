# SPDX-License-Identifier: Apache-2.0
"""Trainer `ddp`: a network with PyTorch's DistributedDataParallel (trainers/torch/ddp.py)."""

from typing import ClassVar, Literal

from roundabout.spec.training.training_spec import Training


class Trainer(Training):
    """Data parallelism: each worker has the whole network. Gradients are all-reduced during the backward pass."""

    program: ClassVar[str] = "trainers/torch/ddp.py"
    kinds: ClassVar[frozenset[str]] = frozenset({"vgg", "resnet", "bert", "gpt"})
    name: Literal["ddp"]
