# SPDX-License-Identifier: Apache-2.0
"""The rates of workers while an iteration communicates."""

from analysis.quantities import CachedReading, Case, QuantityRequest, quantity
from analysis.quantities.load_sweeps.sweep_levels import sweep_properties
from analysis.reading.cross_traffic.intra_iteration_rates import IntraIterationRates, intra_iteration_rates


@quantity("bandwidth inside an iteration", unit="Gbit/s", by="flow")
def bandwidth(request: QuantityRequest) -> list[Case]:
    """Return the rates of flow 1, without cross traffic, and of flow 2, whose link carries cross traffic.

    Each rate is the mean over packets while iterations communicate.
    """
    return [
        Case(
            f"{sweep.name} at {each.percent} %, {flow}",
            rates.over_packets,
            properties=sweep_properties(sweep) | {"load": f"{each.percent} %", "flow": flow},
        )
        for sweep in request.sweeps
        for each in request.reading.cached(_inside)
        if each.loaded.id == sweep.loaded.id
        for flow, rates in (("flow 1", each.flow_1), ("flow 2", each.flow_2))
    ]


def _inside(reading: CachedReading) -> list[IntraIterationRates]:
    return intra_iteration_rates(reading.run)
