# SPDX-License-Identifier: Apache-2.0
"""The rate at which hosts put data into the network, from captured packets, by Salamy's moving average.

Salamy's thesis ("Network Requirements for Distributed Machine Learning Training in the Cloud") calls it the packet
injection rate: outbound packets whose payload is not zero, so that no packet counts twice, seen through a moving
average of 18 (Figure B-5), 30 or 50 samples (Figures 3-10 and 3-11). The thesis does not say what is averaged. Here it
is the payload of consecutive packets over the time that they took. An average of single packets' rates would weigh the
shortest gaps most, and be infinite if two stamps coincide.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class FlowPackets:
    """The packets that one flow of one host sent, in the order of time; bytes are in the paper's scale."""

    trial: str
    host: str
    flow: int  # number of the flow in the host's capture
    destination: str
    at_ns: Integers  # on the run's clock
    payload_bytes: Integers


def flows_of_packets(packets: pa.Table) -> list[FlowPackets]:
    """Return the flows of outbound packets with payload (Salamy's filter) in the table `packets`, largest first."""
    kept = packets.filter(pc.and_(pc.equal(packets["direction"], "out"), pc.greater(packets["payload_bytes"], 0)))
    place = ("trial", "host", "flow")
    kept = kept.filter(pc.is_valid(kept["flow"])).sort_by([(name, "ascending") for name in (*place, "controller_ns")])
    trials, hosts, flows = of = tuple(kept[name].to_numpy() for name in place)
    at_ns = kept["controller_ns"].to_numpy()
    payload = kept["payload_bytes"].to_numpy().astype(np.int64)
    changes = np.logical_or.reduce([each[1:] != each[:-1] for each in of])
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(at_ns)] if len(at_ns) else []
    found = []
    for begin, end in pairwise(edges):
        where = (str(trials[begin]), str(hosts[begin]), int(flows[begin]), str(kept["destination"][begin]))
        found.append(FlowPackets(*where, at_ns[begin:end], payload[begin:end]))
    return sorted(found, key=lambda flow: -int(flow.payload_bytes.sum()))


def moving_average_gbps(at_ns: Integers, payload_bytes: Integers, width: int) -> tuple[Integers, Floats]:
    """Return the instants of packets, ns, and the mean rate over the last `width` packets at each, Gbit/s.

    A packet takes the time since the previous packet, so there are `width` values fewer than packets. A value is nan if
    its packets have one stamp. `at_ns` must not fall. Raises ValueError for a width below 1.
    """
    if width < 1:
        raise ValueError(f"width is {width}, expected at least 1 packet")
    if len(at_ns) <= width:
        return np.empty(0, np.int64), np.empty(0)
    total = np.concatenate([[0], np.cumsum(payload_bytes, dtype=np.int64)])
    sent = total[width + 1 :] - total[1:-width]
    return at_ns[width:], _gbps(sent, at_ns[width:] - at_ns[:-width])


def _gbps(sent_bytes: Integers, took_ns: Integers) -> Floats:
    rate: Floats = np.full(len(took_ns), np.nan)
    np.divide(sent_bytes * 8.0, took_ns, out=rate, where=took_ns > 0)
    return rate
