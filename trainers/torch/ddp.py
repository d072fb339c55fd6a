#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one worker of a job with PyTorch's DistributedDataParallel, over gloo or NCCL: trainers/PROTOCOL.md.

Without `--model` a small network learns what a fixed random one says of synthetic examples. It is as large as an
all-reduce of its gradients sends the bytes that the job's profile says.
"""

import sys

import training


class Ddp:
    """A network, its examples, and one step of learning."""

    def __init__(self, worker):
        import training_models  # noqa: PLC0415 - loads PyTorch

        worker.connect()
        network = training_models.network(worker.shape, worker.job).to(worker.device)
        list(network.parameters())[-1].register_hook(worker.pace.hold)
        self._network = worker.torch.nn.parallel.DistributedDataParallel(network)
        self._optimizer = training.optimizer(worker.torch, network)
        self._examples = training_models.Examples(worker.shape, worker.batch, worker.seed, worker.rank, worker.device)
        self._loss_of = training_models.loss_of

    def step(self):
        """Go forward and back; gradients are everybody's mean when this returns. The loss of this worker's batch."""
        self._optimizer.zero_grad()
        examples, said = self._examples.draw()
        loss = self._loss_of(self._network(examples), said)
        loss.backward()
        return loss.detach()

    def learn(self):
        """Take what the step found into the network."""
        self._optimizer.step()


if __name__ == "__main__":
    sys.exit(training.main(Ddp, training.options(__doc__)))
