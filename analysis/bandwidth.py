# SPDX-License-Identifier: Apache-2.0
"""Bandwidth over time, from cumulative byte counters."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def bytes_between(at_ns: Integers, count: Integers, begin_ns: float, end_ns: float) -> float:
    """Bytes counted from `begin_ns` to `end_ns`, with the cumulative `count` taken as linear between samples.

    nan where the samples do not cover that time.
    """
    begin, end = _counted(at_ns, count, np.array([begin_ns, end_ns]))
    return float(end - begin)


def rate_gbps(at_ns: Integers, count: Integers, edges_ns: Floats) -> Floats:
    """Mean rate in Gbit/s in each bin between consecutive `edges_ns`; nan for bins that the samples do not cover."""
    return np.diff(_counted(at_ns, count, edges_ns)) * 8 / np.diff(edges_ns)


def _counted(at_ns: Integers, count: Integers, when_ns: Floats) -> Floats:
    if len(at_ns) == 0:
        return np.full(len(when_ns), np.nan)
    return np.interp(when_ns, at_ns, count, left=np.nan, right=np.nan)
