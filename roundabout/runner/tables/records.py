# SPDX-License-Identifier: Apache-2.0
"""Reading what host programs print: JSON lines of trainers, CSV lines of samplers."""

import io
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from roundabout.errors import RoundaboutError

Columns = dict[str, npt.NDArray[Any]]
TEXTS = frozenset({"interface", "source", "set", "field", "device", "counter", "unit"})


class RecordError(RoundaboutError):
    """A host program printed what it should not."""


def parse_event(line: str, source: str) -> dict[str, Any]:
    """One line of a trainer. Raises RecordError."""
    try:
        event = json.loads(line)
    except ValueError as error:
        raise RecordError(f"{source} printed {line[:80]!r}, expected JSON") from error
    if not isinstance(event, dict) or "event" not in event:
        raise RecordError(f"{source} printed {line[:80]!r}, expected an object with `event`")
    return event


def parse_samples(lines: Iterable[str], source: str) -> dict[str, Columns]:
    """A sampler's lines as columns of numbers (text for TEXTS), by kind of record ("port", "cpu", ...).

    A column with an empty field, which was not known, holds Python's objects, None among them. Kinds without a single
    sample are left out. Raises RecordError.
    """
    fields: dict[str, list[str]] = {}
    rows: dict[str, list[str]] = {}
    for line in lines:
        kind, _, rest = line.partition(",")
        if kind.startswith("#"):
            fields[kind[1:]] = rest.split(",")
        else:
            rows.setdefault(kind, []).append(rest)
    unknown = rows.keys() - fields.keys()
    if unknown:
        raise RecordError(f"{source} printed records {sorted(unknown)[0]!r} without a header line")
    return {kind: _columns(fields[kind], rows[kind], source) for kind in rows}


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
    """One field of many events."""
    return np.array([event[field] for event in events], dtype=np.int64)
