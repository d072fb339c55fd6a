# SPDX-License-Identifier: Apache-2.0
"""The bus bandwidth that programs report, such as nccl-tests."""

from analysis.quantities import CachedReading, Case, QuantityRequest, mean_of, quantity
from analysis.reading.data import Series, by_iteration


@quantity("bus bandwidth", unit="Gbit/s", digits=1)
def bus_bandwidth(request: QuantityRequest) -> list[Case]:
    """Mean bus bandwidth that a job's program reported for its iterations. Other jobs have no figure."""
    return request.each_repetition(
        request.reading.cached(_bandwidths), lambda found: mean_of([each.mean() for each in found])
    )


def _bandwidths(reading: CachedReading) -> Series:
    return by_iteration(reading.run, "avg(bus_bandwidth_gbps)")
