# SPDX-License-Identifier: Apache-2.0
"""Parsers of host programs' output: JSON lines of trainers, and CSV lines of samplers."""

import io
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from roundabout.core.errors import RoundaboutError

Columns = dict[str, npt.NDArray[Any]]
TEXTS = frozenset({"interface", "source", "set", "field", "device", "counter", "unit"})


class RecordError(RoundaboutError):
    """Error for an invalid line in a host program's output."""


def parse_event(line: str, source: str) -> dict[str, Any]:
    """Parse one JSON line of the trainer `source`. Raises RecordError if the line is invalid."""
    try:
        event = json.loads(line)
    except ValueError as error:
        raise RecordError(f"{source} printed {line[:80]!r}, expected JSON") from error
    if not isinstance(event, dict) or "event" not in event:
        raise RecordError(f"{source} printed {line[:80]!r}, expected an object with `event`")
    return event


class Samples:
    """A sampler's output by kind of record ("port", "cpu", ...). Lines are parsed once, as they arrive."""

    def __init__(self, lines: Sequence[str], source: str) -> None:
        """Follow `lines`, which may still grow."""
        self._lines, self._source = lines, source
        self._taken = 0
        self._fields: dict[str, list[str]] = {}
        self._rows: dict[str, list[str]] = {}

    def rows(self, kind: str, begin: int) -> list[dict[str, str]]:
        """Return the records of one kind from index `begin` on. Each maps fields to text."""
        self._take()
        fields = self._fields.get(kind, [])
        return [dict(zip(fields, row.split(","), strict=False)) for row in self._rows.get(kind, [])[begin:]]

    @cached_property
    def columns(self) -> dict[str, Columns]:
        """Return all records as columns of numbers (text for TEXTS), by kind. Read it only after the sampler's end.

        A column with unknown (empty) values contains Python objects, with None for unknown. Kinds without a record are
        left out. Raises RecordError.
        """
        self._take()
        unknown = self._rows.keys() - self._fields.keys()
        if unknown:
            raise RecordError(f"{self._source} printed records {sorted(unknown)[0]!r} without a header line")
        return {kind: _columns(self._fields[kind], rows, self._source) for kind, rows in self._rows.items()}

    def _take(self) -> None:
        fresh = self._lines[self._taken :]
        self._taken += len(fresh)
        for line in fresh:
            kind, _, rest = line.partition(",")
            if kind.startswith("#"):
                self._fields[kind[1:]] = rest.split(",")
            else:
                self._rows.setdefault(kind, []).append(rest)


def _columns(fields: list[str], rows: list[str], source: str) -> Columns:
    types = {field: pa.string() if field in TEXTS else pa.int64() for field in fields}
    try:
        table = csv.read_csv(
            io.BytesIO("\n".join(rows).encode()),
            read_options=csv.ReadOptions(column_names=fields, use_threads=False),
            convert_options=csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise RecordError(f"{source} printed a line that is no sample: {error}") from error
    return {field: _values(table[field]) for field in fields}


def _values(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    # Arrow would make floats of integers beside nulls, and lose those beyond 2^53.
    return np.array(column.to_pylist(), dtype=object) if column.null_count else np.asarray(column.to_numpy())


def integers(events: Iterable[dict[str, Any]], field: str) -> npt.NDArray[np.int64]:
    """Return the integer `field` of all events as an array."""
    return np.array([event[field] for event in events], dtype=np.int64)
