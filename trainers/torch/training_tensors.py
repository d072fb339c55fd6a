# SPDX-License-Identifier: Apache-2.0
"""Layers divided among several workers, and their communication: all-reduces and exchanges, both ways."""

import torch
import torch.distributed


class Whole:
    """The division of layers that are not divided."""

    count = 1

    def enter(self, given):
        """Return the input of a divided layer."""
        return given

    def leave(self, parts):
        """Return the output of a divided layer."""
        return parts


class Divided(Whole):
    """Layers divided among a group's workers, as Megatron-LM's are: an all-reduce forward, and one backward.

    `hold` is called before each.
    """

    def __init__(self, group, count, hold):
        self._group, self.count, self._hold = group, count, hold

    def enter(self, given):
        """Return the input unchanged; its gradients are summed over the group."""
        return _Enter.apply(given, self)

    def leave(self, parts):
        """Return the sum over the group; its gradients are unchanged."""
        return _Leave.apply(parts, self)

    def summed(self, numbers):
        """Return the sum over the group."""
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
    """Gives each worker an even part of the first dimension, and takes so many numbers from each, flat; and back."""

    @staticmethod
    def forward(context, numbers, taken):
        """Return all numbers taken, in the workers' order."""
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
        """Map divided numbers to whole ones."""
        return self._tensors.leave(self.part(given)) + self.bias


class Column(torch.nn.Module):
    """A linear layer whose outputs are divided."""

    def __init__(self, inputs, outputs, tensors):
        super().__init__()
        self.part = torch.nn.Linear(inputs, outputs // tensors.count)
        self._tensors = tensors

    def forward(self, given):
        """Map whole numbers to divided ones."""
        return self.part(self._tensors.enter(given))
