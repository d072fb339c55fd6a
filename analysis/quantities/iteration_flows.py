# SPDX-License-Identifier: Apache-2.0
"""The rates of a ring's nodes inside iterations, by one reading a packet."""

from analysis.quantities import Asked, Case, Reading, quantity
from analysis.reading.iteration_flows import WORKERS, Iterations, iteration_flows, kept, light_and_heavy
from analysis.statistics.intervals import Measured


@quantity("bandwidth inside an iteration, by packets", unit="Gbit/s", by="flow")
def bandwidth(asked: Asked) -> list[Case]:
    """Return the rates of flow 1, without cross traffic, and flow 2, which shares its link with it.

    The mean of readings.
    """
    return [_case(each, flow, each.over_packets(flow)) for each in _asked(asked) for flow in WORKERS]


@quantity("bandwidth inside an iteration over what would suffice", unit="times", by="flow")
def beyond(asked: Asked) -> list[Case]:
    """Return the rate of a node, by packets, over the even rate that sends as much in as long a communication."""
    return [_case(each, flow, each.beyond(flow)) for each in _asked(asked) for flow in WORKERS]


@quantity("bandwidth of flow 1 above that of flow 2", unit="Gbit/s", signed=True)
def above(asked: Asked) -> list[Case]:
    """Return, inside an iteration and by packets, how much faster a node without cross traffic sends."""
    return [Case(_name(each), *each.above, _properties(each)) for each in _asked(asked)]


@quantity("bandwidth kept from 30 to 80 % load", unit="times", by="flow")
def kept_bandwidth(asked: Asked) -> list[Case]:
    """Return the rate of either flow inside an iteration, by packets, under heavy load over that under light load."""
    return [
        _case(heavy, flow, kept(light, heavy, flow))
        for light, heavy in light_and_heavy(_asked(asked))
        for flow in WORKERS
    ]


def _asked(asked: Asked) -> list[Iterations]:
    wanted = {cell.id for cell in asked.cells}
    found = asked.reading.once(_iteration_flows)
    return [each for each in found if each.cell.id in wanted and asked.job in (None, each.job)]


def _iteration_flows(reading: Reading) -> list[Iterations]:
    return iteration_flows(reading.run)


def _case(found: Iterations, flow: int, measured: Measured) -> Case:
    return Case(f"{_name(found)}, flow {flow}", *measured, _properties(found) | {"flow": f"flow {flow}"})


def _name(found: Iterations) -> str:
    return f"{found.model} at {found.percent} %"


def _properties(found: Iterations) -> dict[str, str]:
    return found.cell.properties | {"job": found.job, "model": found.model, "load": f"{found.percent} %"}
