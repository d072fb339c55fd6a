# SPDX-License-Identifier: Apache-2.0
"""The rates of a ring's nodes inside iterations, with one reading for each packet."""

from analysis.quantities import CachedReading, Case, QuantityRequest, quantity
from analysis.reading.cross_traffic.iteration_flows import (
    WORKERS,
    RingFlows,
    iteration_flows,
    kept_share,
    light_and_heavy_pairs,
)
from analysis.statistics.intervals import Measured


@quantity("bandwidth inside an iteration, by packets", unit="Gbit/s", by="flow")
def bandwidth(request: QuantityRequest) -> list[Case]:
    """Return the rates of flow 1, without cross traffic, and of flow 2, whose link carries cross traffic.

    Each rate is the mean of one reading a packet.
    """
    return [_case(each, flow, each.over_packets(flow)) for each in _requested(request) for flow in WORKERS]


@quantity("bandwidth inside an iteration over what would suffice", unit="times", by="flow")
def beyond(request: QuantityRequest) -> list[Case]:
    """Return a node's rate by packets over the constant rate that would send the same bytes in the same time."""
    return [_case(each, flow, each.over_sufficient(flow)) for each in _requested(request) for flow in WORKERS]


@quantity("bandwidth of flow 1 above that of flow 2", unit="Gbit/s", signed=True)
def above(request: QuantityRequest) -> list[Case]:
    """Return the rate of flow 1 less that of flow 2 inside iterations, by packets; only flow 2 meets cross traffic."""
    return [Case(_name(each), *each.difference, _properties(each)) for each in _requested(request)]


@quantity("bandwidth kept from 30 to 80 % load", unit="times", by="flow")
def kept_bandwidth(request: QuantityRequest) -> list[Case]:
    """Return each flow's rate inside iterations, by packets, at 80 % load over that at 30 % load."""
    return [
        _case(heavy, flow, kept_share(light, heavy, flow))
        for light, heavy in light_and_heavy_pairs(_requested(request))
        for flow in WORKERS
    ]


def _requested(request: QuantityRequest) -> list[RingFlows]:
    wanted = {cell.id for cell in request.cells}
    found = request.reading.cached(_iteration_flows)
    return [each for each in found if each.cell.id in wanted and request.job in (None, each.job)]


def _iteration_flows(reading: CachedReading) -> list[RingFlows]:
    return iteration_flows(reading.run)


def _case(found: RingFlows, flow: int, measured: Measured) -> Case:
    return Case(f"{_name(found)}, flow {flow}", *measured, _properties(found) | {"flow": f"flow {flow}"})


def _name(found: RingFlows) -> str:
    return f"{found.model} at {found.percent} %"


def _properties(found: RingFlows) -> dict[str, str]:
    return found.cell.properties | {"job": found.job, "model": found.model, "load": f"{found.percent} %"}
