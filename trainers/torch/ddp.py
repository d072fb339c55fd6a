#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one worker of a job with PyTorch's DistributedDataParallel, over gloo or NCCL: trainers/PROTOCOL.md.

Without `--model` a small network learns the output of a fixed random one on synthetic examples. Its size is such that
an all-reduce of its gradients sends the profile's bytes.
"""

import sys

import training


class Ddp(training.Whole):
    """A trainer whose gradients are all-reduced in buckets, as buckets fill during the backward pass."""

    def __init__(self, worker):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks  # noqa: PLC0415 - loads PyTorch

        worker.connect()
        super().__init__(worker)
        self.network = worker.torch.nn.parallel.DistributedDataParallel(self.network)
        # Not at the first gradient: what fills the first bucket would then be computed while the network waits.
        hook = default_hooks.allreduce_hook
        self.network.register_comm_hook(None, lambda group, bucket: hook(group, worker.pace.hold(bucket)))


if __name__ == "__main__":
    sys.exit(training.main(Ddp, training.options(__doc__)))
