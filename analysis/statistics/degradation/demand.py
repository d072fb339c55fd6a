# SPDX-License-Identifier: Apache-2.0
"""Training's demand on a link, its available bandwidth, and the difference (equations 3.1, 3.4; Tables 3.1 to 3.8)."""

import numpy as np

from analysis.statistics.degradation.sweep import DegradationError, Sweep
from analysis.statistics.intervals import Array
from roundabout.spec.profile import ring_allreduce_bytes

MEGABITS_PER_GBIT = 1e3


def data_per_iteration_mb(parameters: int, workers: int) -> float:
    """Return the data of a ring all-reduce on each link per iteration, in MB of 10^6 bytes (equation 3.1; Table 3.1).

    Raises DegradationError with fewer than two workers, or without parameters.
    """
    if workers < 2 or parameters <= 0:
        raise DegradationError(f"found {workers} workers and {parameters:g} parameters, expected at least 2, and some")
    return ring_allreduce_bytes(parameters, workers) / 1e6


def required_gbps(data_mb: float, time_s: Array | float) -> Array:
    """Return the bandwidth, Gbit/s, that iterations of `time_s` need, in the same shape (Table 3.1, equation 3.4)."""
    return np.asarray(data_mb * 8 / MEGABITS_PER_GBIT / time_s)


def experimental_mb(available_gbps: Array | float, time_s: Array | float) -> Array:
    """Return the data that the link could carry for the job in an iteration of `time_s`, MB (Tables 3.2, 3.4, 3.6).

    Salamy takes it for the data of an iteration at the congestion point. It is too high, because it counts all
    bandwidth that cross traffic leaves as used.
    """
    return np.asarray(available_gbps * time_s / 8 * MEGABITS_PER_GBIT)


def bandwidth_delta_gbps(sweep: Sweep, data_mb: float) -> Array:
    """Return the available bandwidth less the demand of iterations at each level, Gbit/s; shape (levels,).

    The last value is that of the most congested case (Tables 3.3, 3.5 and 3.7, also in % of the available bandwidth).
    """
    return sweep.available_gbps - required_gbps(data_mb, sweep.means_s)


def spare_capacity_gbps(
    sweep: Sweep, data_mb: float, congestion_gbps: float, *, heaviest_gbps: float = np.inf
) -> float:
    """Return the mean of available less needed bandwidth, Gbit/s, over levels from the congestion point on (Table 3.8).

    Levels above `heaviest_gbps` are left out, because Salamy leaves out very heavy levels without giving the limit.
    Raises DegradationError if no level is left.
    """
    saturated = (sweep.loads_gbps >= congestion_gbps) & (sweep.loads_gbps <= heaviest_gbps)
    if not saturated.any():
        raise DegradationError(
            f"found no level from {congestion_gbps:g} to {heaviest_gbps:g} Gbit/s, expected saturated ones",
            "add levels above the congestion point",
        )
    return float(bandwidth_delta_gbps(sweep, data_mb)[saturated].mean())
