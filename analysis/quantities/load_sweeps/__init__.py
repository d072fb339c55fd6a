# SPDX-License-Identifier: Apache-2.0
"""Quantities of runs over loads of cross traffic. Importing this package registers them."""

from analysis.quantities.load_sweeps import (
    congestion,
    injection,
    iteration_bandwidth,
    iteration_flows,
    kinds_of_traffic,
    load_curve,
    load_fit,
    slow_down,
    spread,
)

__all__ = [
    "congestion",
    "injection",
    "iteration_bandwidth",
    "iteration_flows",
    "kinds_of_traffic",
    "load_curve",
    "load_fit",
    "slow_down",
    "spread",
]
