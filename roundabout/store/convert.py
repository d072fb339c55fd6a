# SPDX-License-Identifier: Apache-2.0
"""From a testbed's bytes to the paper's, in the one place where that happens."""

import pyarrow as pa
import pyarrow.compute as pc

from roundabout.store.schemas import OF_ROW

BYTES = pa.array(["bytes", "bytes/s"])
WIRE = "wire bytes"


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


def to_todays_units(table: pa.Table, today: pa.Schema, scale: float) -> pa.Table:
    """A stored table in the units of today's schema: older runs' packets have bytes as they were on the wire."""
    for index in outdated(table.schema, today):
        table = table.set_column(index, today.field(table.schema.names[index]), _scaled(table.column(index), scale))
    return table


def outdated(stored: pa.Schema, today: pa.Schema) -> list[int]:
    """The places of stored columns that are not in the units of today's schema."""
    return [index for index, field in enumerate(stored) if _unit(field) == WIRE != _unit(today.field(field.name))]


def _unit(field: pa.Field) -> str:
    return str((field.metadata or {}).get(b"unit", b"").decode())


def _scaled(column: pa.ChunkedArray, scale: float) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        return pc.multiply(column, float(scale))
    # Integers where that is possible: floats count exactly only to 2^53.
    if float(scale).is_integer():
        return pc.cast(pc.multiply_checked(pc.cast(column, pa.int64()), int(scale)), column.type)
    return pc.cast(pc.round(pc.multiply(pc.cast(column, pa.float64()), float(scale))), column.type)
