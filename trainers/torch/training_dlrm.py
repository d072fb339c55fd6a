# SPDX-License-Identifier: Apache-2.0
"""A recommendation network like DLRM: embedding tables, a bottom perceptron for numbers, and a top perceptron for both.

Source: Naumov et al. 2019. Parameters and examples are random.
"""

import torch
import training_sizes
from torch import nn

OWN = 4  # tables of each worker if the profile's bytes determine their width
ROWS = 16  # rows of such a table; bytes do not depend on it
NUMBERS = 13  # numbers of an example besides its table rows, as in Criteo's data


def sizes(shape, job, batch):
    """Return the network's sizes: `tables`, `rows`, `dim` and the widths `bottom` and `top`.

    Sizes follow from `shape`, or without one from the profile's bytes.

    Raises ValueError for a shape of another kind, and for too few bytes.
    """
    if shape and shape["kind"] != "dlrm":
        raise ValueError(f"found a network of kind {shape['kind']!r}, expected a dlrm")
    return shape or _sizes_of(training_sizes.sent_by_first(job), len(job["workers"]), batch)


def _sizes_of(sent, count, batch):
    """Return the sizes for that many bytes: half in two exchanges, half in an all-reduce of all but tables."""
    dim, tables = sent // (16 * (count - 1) * batch * OWN), OWN * count
    above = dim + tables * (tables + 1) // 2
    hidden = (sent * count // (16 * (count - 1)) - dim - above - 1) // (dim + NUMBERS + 1)
    if dim < 1 or hidden < 1:
        raise ValueError(f"found {sent} bytes of the first worker, expected more for batches of {batch}")
    return {"tables": tables, "rows": ROWS, "dim": dim, "bottom": [NUMBERS, hidden, dim], "top": [1]}


def shares(tables, count):
    """Return the number of tables of each of `count` workers."""
    return [len(range(rank, tables, count)) for rank in range(count)]


def perceptron(widths):
    """Return linear layers of these widths."""
    each = [part for pair in zip(widths, widths[1:]) for part in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*each[:-1])


class Tables(nn.Module):
    """The embedding tables of one of `count` workers."""

    def __init__(self, sizes, count, rank):
        super().__init__()
        own = shares(sizes["tables"], count)[rank]
        self.tables = nn.ModuleList(nn.Embedding(sizes["rows"], sizes["dim"], sparse=True) for _ in range(own))
        for table in self.tables:
            nn.init.uniform_(table.weight, -(sizes["rows"] ** -0.5), sizes["rows"] ** -0.5)

    def forward(self, rows):
        """Return the rows' embeddings: (own tables, examples) to (examples, own tables x dim)."""
        return torch.cat([table(each) for table, each in zip(self.tables, rows)], 1)


class Above(nn.Module):
    """The network without its tables: the bottom and the top perceptron."""

    def __init__(self, sizes, count):
        super().__init__()
        vectors = sizes["tables"] + 1
        self.bottom = perceptron(sizes["bottom"])
        self.top = perceptron([vectors * (vectors - 1) // 2 + sizes["dim"], *sizes["top"]])
        self._sizes, self._shares = sizes, shares(sizes["tables"], count)

    def forward(self, numbers, looked_up):
        """Return the scores, shape (batch,), of numbers (batch, numbers) and of all workers' flattened embeddings."""
        below, batch, dim = self.bottom(numbers), len(numbers), self._sizes["dim"]
        parts = looked_up.split([batch * own * dim for own in self._shares])
        vectors = torch.cat([below[:, None], *(part.reshape(batch, -1, dim) for part in parts)], 1)
        first, second = torch.triu_indices(vectors.shape[1], vectors.shape[1], 1)
        pairs = (vectors @ vectors.transpose(1, 2))[:, first, second]
        return self.top(torch.cat([below, pairs], 1))[:, 0]


class Examples:
    """Synthetic examples: all workers draw the same rows, and each looks up its own tables for all examples."""

    def __init__(self, sizes, batch, count, rank, seed):
        self._sizes, self._batch, self._count, self._rank = sizes, batch, count, rank
        self._of_all = torch.Generator().manual_seed(seed)
        self._own = torch.Generator().manual_seed(seed + 1 + rank)

    def draw(self):
        """Return numbers (batch, numbers), rows (own tables, examples of all workers) and labels (batch,)."""
        shape = self._sizes["tables"], self._count * self._batch
        rows = torch.randint(self._sizes["rows"], shape, generator=self._of_all)
        numbers = torch.randn(self._batch, self._sizes["bottom"][0], generator=self._own)
        return numbers, rows[self._rank :: self._count], (numbers.sum(1) > 0).float()
