# SPDX-License-Identifier: Apache-2.0
"""The exponential-hyperbola model of iteration time against load (equations 3.2, 3.3 and 3.5 to 3.7)."""

import numpy as np

from analysis.statistics.intervals import Array

EXPONENTS = {"iperf": 1.0, "consistent": 0.5, "burst": 2.0}
"""Salamy's n by kind of cross traffic (equations 3.3, 3.5 and 3.6)."""


def hyperbolic_load(load_gbps: Array, link_gbps: float) -> Array:
    """Return C / (C - BW): 1 without load, unbounded at the link's rate (equation 3.2, for any C)."""
    return link_gbps / (link_gbps - load_gbps)


def iteration_time_s(load_gbps: Array, a_s: float, b: float, n: float, capacity_gbps: float) -> Array:
    """Return t = A exp(B / (C - BW)^n) at loads below C (equation 3.7); n = 1, 1/2, 2 are equations 3.3, 3.5, 3.6.

    A is in s and B in (Gbit/s)^n. The 1.44 beside equation 3.5 is B / C^n.
    """
    return a_s * safe_exp(b / (capacity_gbps - load_gbps) ** n)


def safe_exp(x: Array | float) -> Array:
    """Return exp(x), which is infinite, without a warning, beyond the range of floats, as close to C."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(x))
