# SPDX-License-Identifier: Apache-2.0
"""Jobs compared over variants, testbeds and runs, and intervals of figures of one's own."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.dataframes.frames import frame_of_rows
from analysis.dataframes.sources import Results, describe_source, summary_of
from analysis.expectations.results import JobCell
from analysis.statistics import intervals
from roundabout.core.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

Statistic = Literal["mean", "median", "p99"]
WORDS = ("experiment", "testbed", "setting", "variant", "job")
FIGURES = ("mean_ms", "median_ms", "p99_ms", "speedup")


class Interval(NamedTuple):
    """A figure with the ends of its 95 % interval, which are nan where there is none."""

    value: float
    low: float
    high: float


def interval(repetitions: Sequence[npt.ArrayLike], statistic: Statistic = "mean") -> Interval:
    """Return a statistic of all values with its 95 % interval, from the scatter among repetitions.

    `repetitions` has one array of values for each repetition, in any unit. Values of one repetition depend on each
    other, so only repetitions count as independent: with fewer than four of them the ends are nan. "p99" needs 1,000
    values. Raises UsageError without values, or with too few for the statistic.
    """
    arrays = [np.asarray(each, np.float64) for each in repetitions]
    if not arrays or any(each.size == 0 for each in arrays):
        raise UsageError("a repetition without values has no statistic", "leave it out")
    if statistic != "p99":
        return _interval(intervals.estimate(arrays, np.mean if statistic == "mean" else np.median))
    found = intervals.tail_estimate(arrays)
    if found is None:
        count = sum(each.size for each in arrays)
        raise UsageError(f"a 99th percentile of {count} values would be a guess", f"it needs {intervals.MIN_TAIL}")
    return _interval(found)


def compare(results: Results | Sequence[Results]) -> "pd.DataFrame":
    """Return the iteration times of each job in each variant, one row each, of one or several runs or published runs.

    Columns: experiment, testbed, setting (levels of the factors besides the variant), variant, job, repetitions,
    iterations (number over all repetitions); mean_ms, median_ms and p99_ms (nan with fewer than 1,000 iterations);
    speedup (times as fast as in the variant `baseline`, by medians, or by means where iterations have two modes; nan in
    the baseline itself); marks (ECN marks per iteration, mean; nan where nothing counted them). Each of mean_ms,
    median_ms, p99_ms and speedup has the ends of its 95 % interval in columns that end with _low and _high. Intervals
    need four repetitions. Figures are those of the runs' reports.
    """
    some = results if isinstance(results, Sequence) else [results]
    columns = {
        **dict.fromkeys(WORDS, pa.string()),
        **dict.fromkeys(("repetitions", "iterations"), pa.int64()),
        **{f"{figure}{end}": pa.float64() for figure in FIGURES for end in ("", "_low", "_high")},
        "baseline": pa.string(),
        "marks": pa.float64(),
    }
    return frame_of_rows((row for each in some for row in _rows(each)), columns)


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    source = dict(zip(("experiment", "testbed"), describe_source(results), strict=True))
    for cell in summary_of(results).cells:
        yield {
            **source,
            "setting": cell.id.other_levels,
            "variant": cell.variant,
            "job": cell.job,
            "repetitions": cell.repetitions,
            "iterations": cell.count,
            **_figures(cell),
            "baseline": cell.baseline,
            "marks": cell.marks_per_iteration and cell.marks_per_iteration.mean,
        }


def _figures(cell: JobCell) -> dict[str, float | None]:
    ends = {
        "mean_ms": cell.mean_ci95_ms,
        "median_ms": cell.median_ci95_ms,
        "p99_ms": cell.p99_ci95_ms,
        "speedup": cell.speedup_ci95,
    }
    found: dict[str, float | None] = {}
    for figure in FIGURES:
        low, high = ends[figure] or (None, None)
        found |= {figure: getattr(cell, figure), f"{figure}_low": low, f"{figure}_high": high}
    return found


def _interval(measured: intervals.Measured) -> Interval:
    value, ends = measured
    return Interval(value, *(ends or (np.nan, np.nan)))
