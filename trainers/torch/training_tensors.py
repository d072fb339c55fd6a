# SPDX-License-Identifier: Apache-2.0
"""Layers divided among several workers, and their communication: all-reduces and exchanges, both ways."""

import torch
import torch.distributed


class Whole:
    """The division for undivided layers, which communicates nothing."""

    count = 1

    def enter(self, given):
        """Return the input of a divided layer unchanged."""
        return given

    def leave(self, parts):
        """Return the output of a divided layer unchanged."""
        return parts


class Divided(Whole):
    """The division of layers among a group's workers, as in Megatron-LM: one all-reduce forward and one backward.

    `hold` is called before each all-reduce.
    """

    def __init__(self, group, count, hold):
        self._group, self.count, self._hold = group, count, hold

    def enter(self, given):
        """Return the input unchanged; in the backward pass its gradients are summed over the group."""
        return _Enter.apply(given, self)

    def leave(self, parts):
        """Return the sum of `parts` over the group; in the backward pass gradients are unchanged."""
        return _Leave.apply(parts, self)

    def summed(self, numbers):
        """Return the sum of `numbers` over the group."""
        found = self._hold(numbers).contiguous().clone()
        torch.distributed.all_reduce(found, group=self._group)
        return found


class _Enter(torch.autograd.Function):
    @staticmethod
    def forward(context, given, tensors):
        context.tensors = tensors
        return given.view_as(given)

    @staticmethod
    def backward(context, gradient):
        return context.tensors.summed(gradient), None


class _Leave(torch.autograd.Function):
    @staticmethod
    def forward(context, parts, tensors):
        return tensors.summed(parts)

    @staticmethod
    def backward(context, gradient):
        return gradient, None


class Exchange(torch.autograd.Function):
    """An all-to-all exchange: each worker gets an equal part of the numbers, and `taken[i]` come from worker i."""

    @staticmethod
    def forward(context, numbers, taken):
        """Return the numbers received from all workers, flat, in the workers' order."""
        context.shape, context.taken = numbers.shape, taken
        return _exchanged(numbers, [numbers.numel() // len(taken)] * len(taken), taken)

    @staticmethod
    def backward(context, gradient):
        """Return the gradients by the reverse exchange."""
        given = [context.shape.numel() // len(context.taken)] * len(context.taken)
        return _exchanged(gradient, context.taken, given).reshape(context.shape), None


def _exchanged(numbers, given, taken):
    found = numbers.new_empty(sum(taken))
    torch.distributed.all_to_all_single(found, numbers.reshape(-1).contiguous(), taken, given)
    return found


class Row(torch.nn.Module):
    """A linear layer whose inputs are divided; its bias is added once the parts are summed."""

    def __init__(self, inputs, outputs, tensors):
        super().__init__()
        self.part = torch.nn.Linear(inputs // tensors.count, outputs, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(outputs))
        self._tensors = tensors

    def forward(self, given):
        """Return the whole output for this worker's part of the input."""
        return self._tensors.leave(self.part(given)) + self.bias


class Column(torch.nn.Module):
    """A linear layer whose outputs are divided."""

    def __init__(self, inputs, outputs, tensors):
        super().__init__()
        self.part = torch.nn.Linear(inputs, outputs // tensors.count)
        self._tensors = tensors

    def forward(self, given):
        """Return this worker's part of the output for the whole input."""
        return self.part(self._tensors.enter(given))
