# SPDX-License-Identifier: Apache-2.0
"""Conversion of a testbed's bytes, rates and times to the papers' units. No other module converts them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roundabout.store.schemas import OF_ROW, RUN_NS

WIRE = "wire bytes"
RATES, BYTES, TIMES = ("bytes/s", "Gbit/s"), ("bytes",), ("ns", "us", "ms")


@dataclass(frozen=True)
class Units:
    """The units of a testbed: the papers' rates divided by `scale`, the papers' times multiplied by `dilation`.

    Time dilation: Gupta et al., "To infinity and beyond: time-warped network emulation", NSDI'06. The run's clock and
    the papers' time agree at `anchor_ns`. After it, the papers' time advances `dilation` times more slowly.
    """

    scale: float = 1.0
    dilation: float = 1.0
    anchor_ns: int = 0

    @classmethod
    def from_manifest(cls, testbed: Mapping[str, Any]) -> "Units":
        """Return the units that a manifest's block `testbed` states."""
        return cls(testbed["scale"], testbed.get("dilation", 1.0))

    @property
    def bytes_scale(self) -> float:
        """Return the divisor of bytes: the number of the papers' packets for which one packet stands."""
        return self.scale / self.dilation

    def to_paper_instants(self, run_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Convert instants of the run's clock, in ns, to the papers' time, in ns."""
        if self.dilation == 1:
            return run_ns
        since = np.rint((run_ns - self.anchor_ns) / self.dilation)  # floats do not hold 1e18 exactly
        return self.anchor_ns + since.astype(np.int64)

    def to_paper_instant(self, run_ns: int) -> int:
        """Convert one instant of the run's clock, in ns, to the papers' time, in ns."""
        return int(self.to_paper_instants(np.array(run_ns)))

    def factor(self, unit: str) -> float:
        """Return the factor that converts a figure in `unit` to the papers' units. It is 1 for packets and shares."""
        if unit in RATES:
            return self.scale
        if unit in BYTES:
            return self.bytes_scale
        return 1 / self.dilation if unit in TIMES else 1.0


def to_paper_units(table: pa.Table, units: Units) -> pa.Table:
    """Return the table with all bytes, rates and times in the papers' units."""
    for index, field in enumerate(table.schema):
        unit, column = field.metadata[b"unit"].decode(), table.column(index)
        if unit == RUN_NS:
            column = _instants(column, units)
        elif unit == OF_ROW:
            column = _scaled_by_row(column, table["unit"], units)
        else:
            column = _scaled(column, units.factor(unit))
        table = table.set_column(index, field, column)
    return table


def to_present_units(table: pa.Table, today: pa.Schema, scale: float) -> pa.Table:
    """Return a stored table in the units of the schema `today`. Packets of older runs have unscaled bytes."""
    for index in outdated_columns(table.schema, today):
        table = table.set_column(index, today.field(table.schema.names[index]), _scaled(table.column(index), scale))
    return table


def outdated_columns(stored: pa.Schema, today: pa.Schema) -> list[int]:
    """Return the indices of columns in `stored` whose units differ from the schema `today`."""
    return [index for index, field in enumerate(stored) if _unit(field) == WIRE != _unit(today.field(field.name))]


def _unit(field: pa.Field) -> str:
    return str((field.metadata or {}).get(b"unit", b"").decode())


def _instants(column: pa.ChunkedArray, units: Units) -> pa.ChunkedArray:
    if units.dilation == 1:
        return column
    known = units.to_paper_instants(np.asarray(column.fill_null(units.anchor_ns).to_numpy(), dtype=np.int64))
    return pa.chunked_array([pa.array(known, column.type, mask=column.is_null().to_numpy())])


def _scaled_by_row(column: pa.ChunkedArray, unit: pa.ChunkedArray, units: Units) -> pa.ChunkedArray:
    import pyarrow.compute as pc  # noqa: PLC0415 - commands that convert nothing need not wait for it

    scaled = column
    for each in unit.unique().to_pylist():
        here = pc.if_else(pc.equal(unit, each), column, None)  # alone: what others count might not bear this factor
        scaled = pc.coalesce(_scaled(here, units.factor(each)), scaled)
    return scaled


def _scaled(column: pa.ChunkedArray, factor: float) -> pa.ChunkedArray:
    if factor == 1:
        return column
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    if pa.types.is_floating(column.type):
        return pc.multiply(column, float(factor))
    # Integers where that is possible: floats count exactly only to 2^53.
    if float(factor).is_integer():
        return pc.cast(pc.multiply_checked(pc.cast(column, pa.int64()), int(factor)), column.type)
    return pc.cast(pc.round(pc.multiply(pc.cast(column, pa.float64()), float(factor))), column.type)
