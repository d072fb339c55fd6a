# SPDX-License-Identifier: Apache-2.0
"""Which loads to measure next: where a sweep still says least about the congestion point and the asymptote."""

import numpy as np

from analysis.bootstrap import Array
from analysis.degradation.sweep import Sweep

LEAST_STEP_GBPS = 0.25
"""Closer levels tell little more: at high loads what is achieved misses what was asked by more (section 3.4.1)."""


def next_levels_gbps(sweep: Sweep, crossing_gbps: float | None) -> Array:
    """Loads worth measuring next, rising; empty when the sweep is as fine as it need be.

    They halve the gap that holds the crossing of Figure A-1 (where it is known), the gap over which the time grows by
    the greatest factor, and the one between the last level and the link's rate, where the asymptote lies.
    """
    ends = np.append(sweep.loads_gbps, sweep.link_gbps)
    widths = np.diff(ends)
    wanted = {int(np.diff(np.log(sweep.means_s)).argmax()), len(widths) - 1}
    if crossing_gbps is not None:
        wanted.add(max(int(np.searchsorted(sweep.loads_gbps, crossing_gbps)) - 1, 0))
    gaps = [gap for gap in sorted(wanted) if widths[gap] >= 2 * LEAST_STEP_GBPS]
    return ends[gaps] + widths[gaps] / 2
