# SPDX-License-Identifier: Apache-2.0
"""Trainer `dlrm`: a recommendation network whose tables are divided among workers (trainers/torch/dlrm.py)."""

from typing import ClassVar, Literal

from roundabout.spec.training.training_spec import Training


class Trainer(Training):
    """Model parallelism for embedding tables, with all-to-all exchanges of rows. Other gradients are all-reduced."""

    program: ClassVar[str] = "trainers/torch/dlrm.py"
    kinds: ClassVar[frozenset[str]] = frozenset({"dlrm"})
    name: Literal["dlrm"]
