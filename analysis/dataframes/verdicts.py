# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the expectations of a run as a DataFrame."""

from typing import TYPE_CHECKING

import pyarrow as pa

from analysis.dataframes.frames import frame_of_rows
from analysis.dataframes.sources import Results, summary_of

if TYPE_CHECKING:
    import pandas as pd

WORDS = ("expectation", "source", "expected", "found", "unit", "verdict", "basis", "undecided")


def verdicts(results: Results) -> "pd.DataFrame":
    """Return the verdicts on the expectations of a run or of a published run, one row each.

    Columns: expectation (the figure, or the paper's claim), source (in the paper), expected, found (as text), measured
    (the figure, in `unit`; nan for several figures and claims), measured_low and measured_high (its 95 % interval),
    unit, verdict (pass, fail, inconclusive or not measured), basis, and undecided (why it is inconclusive).
    """
    rows = (
        {
            **vars(each),
            "expectation": each.claim or each.subject,
            **dict(zip(("measured_low", "measured_high"), each.ci95 or (None, None), strict=True)),
        }
        for each in summary_of(results).expectations
    )
    words = dict.fromkeys(WORDS, pa.string())
    figures = dict.fromkeys(("measured", "measured_low", "measured_high"), pa.float64())
    ordered = ("expectation", "source", "expected", "found", *figures, "unit", "verdict", "basis", "undecided")
    return frame_of_rows(rows, {name: (words | figures)[name] for name in ordered})
