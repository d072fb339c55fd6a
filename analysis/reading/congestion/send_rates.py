# SPDX-License-Identifier: Apache-2.0
"""The rate at which senders put cross traffic into the network, from their captures (Salamy, Figures 3-8 and B-5).

Salamy does not say how an instantaneous rate follows from packets, and a histogram's shape depends on it. A capture
allows three ways (`READINGS_BY`). The first reads the moving average of Figure B-5 once a packet, which weighs fast
moments more than slow ones. The second reads the same average at even distances of time. The third counts the payload
in windows of time, which needs no gaps between packets. A single packet has no rate: packets leave back to back, and
the gap between two stamps is the tap's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from analysis.reading.cross_traffic.injection import flows_of_packets, moving_average_gbps
from analysis.reading.data import query
from analysis.statistics.cumulative_counter import Floats, Integers
from roundabout.store import Run

WIDTH = 18
"""Packets in the moving average (Figure B-5)."""
READINGS = 60_000
"""Number of readings, as in Figure 3-8."""
READINGS_BY = ("time", "packet", "window")
"""Ways to read rates: at even distances of time, once a packet, and in windows as long as WIDTH packets on average."""


@dataclass(frozen=True)
class SendRates:
    """The rates at which a sender sent one kind of cross traffic, as arrays of one length.

    `gbps` is read at even distances of time, `at_ns`; `readings_gbps` holds the rates for each of READINGS_BY.
    """

    kind: str
    asked_gbps: float
    at_ns: Integers
    gbps: Floats
    readings_gbps: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name in figures."""
        return f"{self.kind}, {self.asked_gbps:g} Gbit/s requested"


def skewness(values: Floats) -> float:
    """Return the skewness of values: 0 if they are symmetric about their mean, positive with a tail of high values."""
    away = values - values.mean()
    return float((away**3).mean() / (away**2).mean() ** 1.5)


def send_rates(run: Run, most: int = 1) -> list[SendRates]:
    """Return the send rates of each kind of cross traffic in at most `most` captured trials at the heaviest load.

    Only packets sent while jobs ran count, because captures begin earlier. Senders that are workers too are left out,
    because a capture does not distinguish a job's packets from cross traffic.
    """
    packets = query(
        run,
        """
        with senders as (select trial, host, any_value(kind) as kind, sum(asked_gbps) as asked_gbps from cross_traffic
                         where (trial, host) not in (select (trial, host) from iterations) group by trial, host),
             ran as (select trial, min(start_ns) as begin_ns, max(comm_end_ns) as end_ns from iterations group by trial)
        select packets.trial, packets.host, direction, payload_bytes, flow, destination, packets.controller_ns,
               kind, asked_gbps
        from packets join senders using (trial, host) join ran using (trial)
        where packets.controller_ns between begin_ns and end_ns
        qualify rank() over (partition by kind order by asked_gbps desc) = 1
            and dense_rank() over (partition by kind order by asked_gbps desc, packets.trial) <= $most
        """,
        most=most,
    )
    kinds = {row["trial"]: row for row in packets.group_by(["trial", "kind", "asked_gbps"]).aggregate([]).to_pylist()}
    flows = flows_of_packets(packets)
    found = []
    for trial, row in kinds.items():
        own = [flow for flow in flows if flow.trial == trial]
        if not own:
            continue
        at_ns = np.concatenate([flow.at_ns for flow in own])
        order = np.argsort(at_ns, kind="stable")
        payload = np.concatenate([flow.payload_bytes for flow in own])[order]
        if read := _readings(at_ns[order], payload):
            found.append(SendRates(row["kind"], row["asked_gbps"], *read))
    return sorted(found, key=attrgetter("kind"))


def _readings(sent_ns: Integers, payload_bytes: Integers) -> tuple[Integers, Floats, Mapping[str, Floats]] | None:
    at_ns, gbps = moving_average_gbps(sent_ns, payload_bytes, WIDTH)
    known = np.isfinite(gbps)
    if not known.any():
        return None
    evenly_ns, evenly = _resample_evenly(at_ns[known], gbps[known])
    each = (evenly, gbps[known][:READINGS], _windows_gbps(sent_ns, payload_bytes)[:READINGS])
    return evenly_ns, evenly, dict(zip(READINGS_BY, each, strict=True))


def _windows_gbps(sent_ns: Integers, payload_bytes: Integers) -> Floats:
    """Return the rate of payload in each window that lies wholly within the capture."""
    span_ns = int(sent_ns[-1] - sent_ns[0])
    windows = max(len(sent_ns) // WIDTH, 1)
    edges = sent_ns[0] + np.linspace(0, span_ns, windows + 1)
    sent_bytes, _ = np.histogram(sent_ns, edges, weights=payload_bytes)
    return np.asarray(sent_bytes * 8 * windows / span_ns)


def _resample_evenly(at_ns: Integers, gbps: Floats) -> tuple[Integers, Floats]:
    """Return the average at evenly spaced instants: at each, that of the packet which leaves next."""
    evenly_ns = at_ns[0] + np.linspace(0, at_ns[-1] - at_ns[0], READINGS).astype(np.int64)
    return evenly_ns, gbps[np.searchsorted(at_ns, evenly_ns)]
