#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one worker of a recommendation job (DLRM), with PyTorch over gloo or NCCL: trainers/PROTOCOL.md.

Embedding tables are divided among workers, which exchange looked-up rows, forward and back; the layers above are on
each worker, by DistributedDataParallel. Without `--model` half of the profile's bytes are exchanged and half
all-reduced: a guess. Effect: which part of an iteration waits for which.
"""

import sys

import training


class Dlrm:
    """A trainer of a worker's tables and of its copy of the network above all tables."""

    def __init__(self, worker):
        import training_dlrm  # noqa: PLC0415 - loads PyTorch
        from training_tensors import Exchange  # noqa: PLC0415

        worker.connect()
        sizes = training_dlrm.sizes(worker.shape, worker.job, worker.batch)
        self._worker, self._exchange = worker, Exchange.apply
        self._taken = [worker.batch * own * sizes["dim"] for own in training_dlrm.shares(sizes["tables"], worker.count)]
        self._tables = training_dlrm.Tables(sizes, worker.count, worker.rank).to(worker.device)
        above = training_dlrm.Above(sizes, worker.count).to(worker.device)
        self._above = worker.torch.nn.parallel.DistributedDataParallel(above)
        rate = training.rate_of(above)
        self._optimizer = training.optimizer(worker.torch, above, rate=rate)
        # No momentum, because a step looks up few rows of a table, and momentum would change all rows.
        self._of_tables = training.optimizer(worker.torch, self._tables, momentum=0, rate=rate)
        self._examples = training_dlrm.Examples(sizes, worker.batch, worker.count, worker.rank, worker.seed)

    def step(self):
        """Look up rows, exchange them, and do the forward and backward pass; return the loss of this worker's batch."""
        self._optimizer.zero_grad()
        self._of_tables.zero_grad()
        dense, rows, clicks = (each.to(self._worker.device) for each in self._examples.draw())
        looked_up = self._worker.pace.hold(self._tables(rows))
        found = self._above(dense, self._exchange(looked_up, self._taken))
        loss = self._worker.torch.nn.functional.binary_cross_entropy_with_logits(found, clicks)
        loss.backward()
        return loss.detach()

    def learn(self):
        """Apply the step's gradients to tables and network."""
        self._optimizer.step()
        self._of_tables.step()


if __name__ == "__main__":
    sys.exit(training.main(Dlrm, training.options(__doc__)))
