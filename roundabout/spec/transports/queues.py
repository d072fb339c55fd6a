# SPDX-License-Identifier: Apache-2.0
"""Kinds of queues at switch ports, and their sizes."""

from typing import Literal, get_args

QueueName = Literal["thresholds", "step", "drop-tail", "red"]
"""Kinds of queues at switch ports.

thresholds: the port marks with increasing probability between two thresholds (WRED). The thresholds are those of the
transport's `ecn` or set, or the testbed's. step: the port marks every packet above one threshold (`step_bytes`).
drop-tail: the port never marks, and drops packets beyond DROP_TAIL_MS of the link or the topology's `queue_bytes`.
red: the port marks by the average queue (RED: Floyd and Jacobson, 1993) between the same thresholds; Kmin, Kmax and
Pmax are the paper's min_th, max_th and max_p. Packets without ECN are dropped where others are marked.
"""
QUEUES: tuple[QueueName, ...] = get_args(QueueName)

# Length of a drop-tail queue, in ms at the link's payload rate: 5.4 MB at 43 Gbit/s. A switch with tens of MB of shared
# buffer lends one port about as much. A guess, because no paper states the queue under its Reno and CUBIC.
DROP_TAIL_MS = 1.0

# DCTCP's K (Alizadeh et al., SIGCOMM'10, section 3.5; RFC 8257 leaves it to operators): 65 packets of 1500 bytes at 10
# Gbit/s, 20 at 1 Gbit/s. It grows in proportion to the rate, but is at least 20 packets, because windows have a minimum
# in packets.
STEP_BYTES_PER_GBPS, STEP_LEAST_PACKETS = 6.5 * 1500, 20

# RED's w_q: the weight of a packet in the average queue (Floyd and Jacobson, 1993, section 6). The average follows the
# queue over some 500 packets.
RED_WEIGHT = 0.002


def drop_tail_bytes(payload_rate_gbps: float) -> int:
    """Return the length of a drop-tail queue, in bytes at the papers' scale."""
    return round(payload_rate_gbps * 1e9 / 8 * DROP_TAIL_MS / 1e3)


def step_bytes(line_rate_gbps: float, mtu_bytes: int, bytes_scale: float = 1.0) -> int:
    """Return the queue length, in bytes, above which a port marks every packet. `bytes_scale` divides bytes."""
    return round(max(STEP_BYTES_PER_GBPS * line_rate_gbps / bytes_scale, STEP_LEAST_PACKETS * mtu_bytes))
