#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one worker of a job with DeepSpeed, over gloo or NCCL: trainers/PROTOCOL.md.

Layers are divided among workers (pipeline), or each layer is (tensor), or both (hybrid), or nothing is (data); copies
of all that share batches. DeepSpeed's pipelines do all of it; layers divide themselves, as Megatron-LM's do. Without
`--model` the network's width is such that the first worker sends the profile's bytes.
"""

import os
import sys

import training
import training_sizes


class Division:
    """The division of the network; rank = (part x copies + copy) x tensors + tensor, DeepSpeed's own order."""

    def __init__(self, worker):
        self.parts, self.tensors, self.copies = training_sizes.division(worker.request.parallel, worker.count)
        self.copy = worker.rank // self.tensors % self.copies

    def group(self, worker):
        """Return the group of the workers that divide layers with this worker; every worker creates all groups."""
        firsts = range(0, worker.count, self.tensors)
        groups = {first: worker.torch.distributed.new_group(range(first, first + self.tensors)) for first in firsts}
        return groups[worker.rank - worker.rank % self.tensors]


def layers(worker, division):
    """Return the specifications of the network's layers, of which DeepSpeed builds a worker's own."""
    import training_networks as models  # noqa: PLC0415 - loads PyTorch
    import training_tensors  # noqa: PLC0415
    from deepspeed.pipe import LayerSpec, TiedLayerSpec  # noqa: PLC0415

    tensors = models.WHOLE
    if division.tensors > 1:
        tensors = training_tensors.Divided(division.group(worker), division.tensors, worker.pace.hold)
    if worker.shape is None and worker.request.parallel == "data":
        return [LayerSpec(*part) for part in models.perceptron(models.width(models.gradient_numbers(worker.job)))]
    if worker.shape is None:
        parts = models.divided(worker.job, worker.batch, division.parts, tensors, division.copies)
        return [LayerSpec(*part) for part in parts]
    if worker.shape["kind"] != "gpt":
        raise ValueError(f"found a network of kind {worker.shape['kind']!r}, expected a gpt")
    sizes = {name: value for name, value in worker.shape.items() if name != "kind"}
    words, *parts = models.gpt(**sizes, tensors=tensors)
    tied = {"tied_weight_attr": "words.weight"}
    first, last = (
        TiedLayerSpec("words", *words, **tied),
        TiedLayerSpec("words", *words, forward_fn=models.scores, **tied),
    )
    return [first, *(LayerSpec(*part) for part in parts), last]


class DeepSpeed:
    """A trainer with DeepSpeed's engine and its examples."""

    def __init__(self, worker):
        os.environ.setdefault("DS_ACCELERATOR", "cuda" if worker.backend == "nccl" else "cpu")
        places = {"RANK": worker.rank, "WORLD_SIZE": worker.count, "LOCAL_RANK": worker.device.index or 0}
        os.environ.update({name: str(value) for name, value in places.items()})
        import deepspeed  # noqa: PLC0415 - whether it is there is for this process to say
        import training_networks  # noqa: PLC0415
        from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology  # noqa: PLC0415

        worker.connect()
        deepspeed.init_distributed(worker.backend)
        division = Division(worker)
        topology = PipeModelDataParallelTopology(division.parts, division.tensors, division.copies)
        network = deepspeed.pipe.PipelineModule(
            layers(worker, division), topology=topology, loss_fn=training_networks.loss_of, partition_method="uniform"
        )
        # The first of these that comes: an all-reduce of tensors, a stage's end, and of what is whole a gradient.
        if division.parts > 1:
            network.register_forward_hook(lambda *_: worker.pace.hold(None))
        list(network.parameters())[-1].register_hook(worker.pace.hold)
        optimizer = training.optimizer(worker.torch, network, rate=training.rate_of(network))
        micro = worker.batch // worker.request.micro_batches
        config = {
            "train_micro_batch_size_per_gpu": micro,
            "gradient_accumulation_steps": worker.request.micro_batches,
            "pipeline": {"pipe_partitioned": False, "grad_partitioned": False},
            "steps_per_print": sys.maxsize,
        }
        self._engine, *_ = deepspeed.initialize(model=network, optimizer=optimizer, config=config)
        examples = training_networks.Examples(worker.shape, micro, worker.seed, division.copy, worker.device)
        self._examples = iter(examples.draw, None)

    def step(self):
        """Run a pipeline's whole batch, and update parameters; return the loss, averaged over workers."""
        return self._engine.train_batch(self._examples).detach()

    def learn(self):
        """Do nothing, because `step` has updated the parameters."""


def options():
    """Return the parser of all trainers' options and DeepSpeed's own."""
    parser = training.options(__doc__)
    parser.add_argument("--parallel", choices=["data", "pipeline", "tensor", "hybrid"], required=True)
    parser.add_argument("--micro-batches", type=int, required=True, help="of a batch; they follow each other")
    return parser


if __name__ == "__main__":
    sys.exit(training.main(DeepSpeed, options()))
