# SPDX-License-Identifier: Apache-2.0
"""From a testbed's bytes to the paper's, in the one place where that happens."""

import pyarrow as pa
import pyarrow.compute as pc

from roundabout.store.schemas import OF_ROW

BYTES = pa.array(["bytes", "bytes/s"])


def to_paper_units(table: pa.Table, scale: float) -> pa.Table:
    """Multiply whatever counts bytes, or is a rate, by `scale`; counts of packets and times stay as they are."""
    for index, field in enumerate(table.schema):
        unit, column = field.metadata[b"unit"].decode(), table.column(index)
        if unit in ("bytes", "Gbit/s"):
            table = table.set_column(index, field, _scaled(column, scale))
        elif unit == OF_ROW:
            counts_bytes = pc.is_in(table["unit"], value_set=BYTES)
            table = table.set_column(index, field, pc.if_else(counts_bytes, _scaled(column, scale), column))
    return table


def _scaled(column: pa.ChunkedArray, scale: float) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        return pc.multiply(column, float(scale))
    # Integers where that is possible: floats count exactly only to 2^53.
    if float(scale).is_integer():
        return pc.multiply_checked(column, int(scale))
    return pc.cast(pc.round(pc.multiply(pc.cast(column, pa.float64()), float(scale))), column.type)
