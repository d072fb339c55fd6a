# SPDX-License-Identifier: Apache-2.0
"""How cross traffic is put into the network: by captured packets, and by the flows of its load."""

import numpy as np

from analysis.quantities import Asked, Case, Reading, quantity
from analysis.reading.data import query
from analysis.reading.injected import READINGS_BY, Injected, injected, skewness
from analysis.statistics.intervals import Array, exactly

BEYOND = 0.995
"""Readings above this quantile count in no skewness: packets that left back to back, faster than the link."""


@quantity("skewness of the injection rate, to either side", by="traffic")
def skew(asked: Asked) -> list[Case]:
    """Of the rates at the heaviest load captured, in each way to read them: 0 where they are symmetric.

    Salamy says that there is a tail and a skew (Figure 3-8), and not to which side.
    """
    found = asked.reading.once(_injected)
    cases = []
    for way in READINGS_BY if found else ():
        top_gbps = np.quantile(np.concatenate([each.readings_gbps[way] for each in found]), BEYOND)
        for each in found:
            readings = each.readings_gbps[way]
            own = {"traffic": each.kind, "readings": way}
            cases.append(Case(f"{each.kind}, by {way}", abs(skewness(readings[readings <= top_gbps])), properties=own))
    return cases


@quantity("injection rate over the load asked for", unit="times", by="traffic")
def mean(asked: Asked) -> list[Case]:
    """Mean of the rates at the heaviest load captured, over that load."""
    return [
        Case(each.kind, float(each.gbps.mean()) / each.asked_gbps, properties={"traffic": each.kind})
        for each in asked.reading.once(_injected)
    ]


@quantity("time between bursts of the load", unit="ms", digits=1)
def period(asked: Asked) -> list[Case]:
    """From the first flow that is due in a burst to that in the next; the median."""
    return [Case("bursts", *exactly(float(np.median(np.diff(begins)))))] if len(begins := _bursts(asked)[0]) > 1 else []


@quantity("length of bursts of the load", unit="ms", digits=1)
def length(asked: Asked) -> list[Case]:
    """From the first flow that is due in a burst to the last; the longest."""
    return [Case("bursts", *exactly(float(lengths.max())))] if len(lengths := _bursts(asked)[1]) else []


def _injected(reading: Reading) -> list[Injected]:
    return injected(reading.run)


def _bursts(asked: Asked) -> tuple[Array, Array]:
    return asked.reading.once(_of_load)


def _of_load(reading: Reading) -> tuple[Array, Array]:
    """When bursts of the first trial under burst traffic begin, and how long they last, in ms.

    Flows of one burst are due less than half of Salamy's period apart.
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
