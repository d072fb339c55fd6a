# SPDX-License-Identifier: Apache-2.0
"""Bandwidth over time, from cumulative byte counters."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def bytes_between(at_ns: Integers, count: Integers, begin_ns: float, end_ns: float) -> float:
    """Bytes counted from `begin_ns` to `end_ns`, with the cumulative `count` taken as linear between samples."""
    begin, end = np.interp([begin_ns, end_ns], at_ns, count)
    return float(end - begin)


def rate_gbps(at_ns: Integers, count: Integers, edges_ns: Floats) -> Floats:
    """Mean rate in Gbit/s in each bin between consecutive `edges_ns`; nan for bins that the samples do not cover."""
    counted = np.interp(edges_ns, at_ns, count, left=np.nan, right=np.nan)
    return np.diff(counted) * 8 / np.diff(edges_ns)
