# SPDX-License-Identifier: Apache-2.0
"""DataFrames from Arrow tables. Pandas is imported when the first one is made, because only notebooks install it."""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analysis.reading.cells import CellId
from roundabout.core.errors import UsageError
from roundabout.store import Run

if TYPE_CHECKING:
    import pandas as pd

TRIAL = {"trial": pa.string(), "variant": pa.string(), "setting": pa.string(), "repetition": pa.int64()}
"""Columns that name a trial. `setting` is the levels of all factors besides the variant, as text."""


def to_frame(table: pa.Table) -> "pd.DataFrame":
    """Return an Arrow table as a DataFrame. Raises UsageError if pandas is not installed."""
    if find_spec("pandas") is None:
        raise UsageError("pandas is not installed", "install it: ./bootstrap notebook, or pip install pandas")
    return table.to_pandas()


def frame_of_rows(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> "pd.DataFrame":
    """Return a DataFrame with these columns, which it has without rows too."""
    return to_frame(pa.Table.from_pylist(list(rows), schema=pa.schema(columns)))


def trial_columns(run: Run) -> dict[str, dict[str, Any]]:
    """Return the values of the columns `TRIAL` by trial."""
    found = {}
    for record in run.trials():
        cell = CellId.of(record)
        found[record["trial"]] = {
            "trial": record["trial"],
            "variant": cell.variant,
            "setting": cell.other_levels,
            "repetition": record["repetition"],
        }
    return found
