# SPDX-License-Identifier: Apache-2.0
"""The rates at which cross traffic enters the network: by captured packets, and by the flows of its load."""

from itertools import groupby
from operator import attrgetter

import numpy as np

from analysis.quantities import CachedReading, Case, QuantityRequest, mean_of, quantity
from analysis.reading.congestion.send_rates import READINGS_BY, SendRates, send_rates, skewness
from analysis.reading.data import query
from analysis.statistics.intervals import Array, Measured, exact

BEYOND = 0.995
"""Quantile above which readings are left out of the skewness: those packets left back to back, faster than the link."""


@quantity("skewness of the injection rate, to either side", by="traffic")
def skew(request: QuantityRequest) -> list[Case]:
    """Return the absolute skewness of send rates at the heaviest captured load, for each way to read rates.

    The figure is the mean of repetitions, and 0 for a symmetric distribution.

    It has no sign, because Salamy states a tail and a skew (Figure 3-8) but not the side.
    """
    found = request.reading.cached(_injected)
    cases = []
    for way in READINGS_BY if found else ():
        trials = [each.readings_gbps[way] for some in found.values() for each in some]
        top_gbps = np.quantile(np.concatenate(trials), BEYOND)
        for kind, some in found.items():
            readings = [each.readings_gbps[way] for each in some]
            skews = [skewness(each[each <= top_gbps]) for each in readings]
            own = {"traffic": kind, "readings": way}
            cases.append(Case(f"{kind}, by {way}", *_to_either_side(mean_of(skews)), own))
    return cases


@quantity("injection rate over the load asked for", unit="times", by="traffic")
def mean(request: QuantityRequest) -> list[Case]:
    """Return the mean send rate at the heaviest captured load over the requested load; the mean of repetitions."""
    return [
        Case(kind, *mean_of([float(each.gbps.mean()) / each.asked_gbps for each in some]), {"traffic": kind})
        for kind, some in request.reading.cached(_injected).items()
    ]


@quantity("time between bursts of the load", unit="ms", digits=1)
def period(request: QuantityRequest) -> list[Case]:
    """Return the median time between the first planned flows of consecutive bursts."""
    return [Case("bursts", *exact(float(np.median(np.diff(begins)))))] if len(begins := _bursts(request)[0]) > 1 else []


@quantity("length of bursts of the load", unit="ms", digits=1)
def length(request: QuantityRequest) -> list[Case]:
    """Return the longest time from the first planned flow of a burst to its last."""
    return [Case("bursts", *exact(float(lengths.max())))] if len(lengths := _bursts(request)[1]) else []


def _injected(reading: CachedReading) -> dict[str, list[SendRates]]:
    """Return the send rates by kind of traffic, a capture a repetition."""
    found = send_rates(reading.run, reading.experiment.repetitions)
    return {kind: list(some) for kind, some in groupby(found, attrgetter("kind"))}


def _to_either_side(measured: Measured) -> Measured:
    """Return the figure without its sign; an interval on both sides of 0 begins there."""
    figure, ends = measured
    if ends is None:
        return abs(figure), None
    low, high = sorted(map(abs, ends))
    return abs(figure), (0.0 if ends[0] < 0 < ends[1] else low, high)


def _bursts(request: QuantityRequest) -> tuple[Array, Array]:
    return request.reading.cached(_of_load)


def _of_load(reading: CachedReading) -> tuple[Array, Array]:
    """Return begins and lengths of the bursts in the first trial under burst traffic, in ms.

    Flows of one burst are planned less than half of Salamy's period apart.
    """
    due_ns = query(
        reading.run,
        """
        with chosen as (select trial, traffic from cross_traffic where kind = 'burst' order by trial limit 1)
        select controller_ns from cross_flows join chosen using (trial, traffic)
        where class = 'burst' order by controller_ns
        """,
    )["controller_ns"].to_numpy()
    at_ms = (due_ns - due_ns[:1].sum()) / 1e6
    first = np.flatnonzero(np.diff(at_ms, prepend=-np.inf) > 5)
    last = np.append(first[1:], len(at_ms)) - 1
    return at_ms[first], at_ms[last] - at_ms[first] if len(first) else np.empty(0)
