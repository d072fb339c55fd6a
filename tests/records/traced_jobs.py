# SPDX-License-Identifier: Apache-2.0
"""Execution traces of the two jobs of `execution-traces`, as a job's framework would describe them."""

from collections.abc import Iterator
from pathlib import Path

from tests.records.record_writers import bytes_field, collective_node, computing_node, et, graph_node, groups_node

RANKS = 4
SHARDS = 2
"""Ranks among which the second job divides its parameters; two such groups have the same ones."""
LAYERS = 4
TFLOPS = 400
MB = 10**6


def write_traces(folder: Path, job: str) -> list[Path]:
    """Write a job's traces, `<job>.<rank>.et`, and return them."""
    paths = [folder / f"{job}.{rank}.et" for rank in range(RANKS)]
    for rank, path in enumerate(paths):
        path.write_bytes(et([bytes_field(1, b"0.0.4"), *JOBS[job](rank)]))
    return paths


def _data_parallel(_rank: int) -> Iterator[bytes]:
    """Yield a forward pass, and layers of a backward pass whose gradients are all-reduced beside the next layer."""
    yield computing_node(1, 60_000)
    for layer in range(LAYERS):
        yield computing_node(10 + layer, 20_000, 9 + layer if layer else 1)
        yield collective_node(20 + layer, 450 * MB, 10 + layer)
    yield computing_node(30, 8_000, *range(20, 20 + LAYERS), 9 + LAYERS)


def _sharded(rank: int) -> Iterator[bytes]:
    """Yield layers whose parameters are gathered beside the layer before, and gradients scattered and reduced."""
    yield groups_node({"shards0": (0, 1), "shards1": (2, 3), "copies0": (0, 2), "copies1": (1, 3)})
    shards, copies = f"shards{rank // SHARDS}", f"copies{rank % SHARDS}"
    for layer in range(LAYERS):
        yield collective_node(10 + layer, 200 * MB, pg_name=shards, kind="all-gather")
        before = [19 + layer] if layer else []
        yield graph_node(20 + layer, 4, 10 + layer, *before, num_ops=8 * 10**12, tensor_size=400 * MB)
    for layer in range(LAYERS):
        yield graph_node(30 + layer, 4, 29 + layer if layer else 19 + LAYERS, num_ops=16 * 10**12, tensor_size=400 * MB)
        yield collective_node(40 + layer, 400 * MB, 30 + layer, pg_name=shards, kind="reduce-scatter")
        yield collective_node(50 + layer, 200 * MB, 40 + layer, pg_name=copies)


JOBS = {"data-parallel": _data_parallel, "sharded": _sharded}
