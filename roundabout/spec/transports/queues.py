# SPDX-License-Identifier: Apache-2.0
"""The queues at switch ports for which transports are meant."""

from typing import Literal, get_args

QueueName = Literal["thresholds", "step", "drop-tail"]
"""What ports do with what waits there.

thresholds: they mark between two thresholds (WRED), those of the testbed or of the transport's set, and are as long as
the topology says. step: the same, and they mark all above one threshold (`step_bytes`). drop-tail: nothing is marked;
what is more than DROP_TAIL_MS of the link, or than the topology's `queue_bytes`, is lost.
"""
QUEUES: tuple[QueueName, ...] = get_args(QueueName)

# Of the link's payload rate: 5.4 MB at 43 Gbit/s, what a switch of a few tens of MB lends one port that is in need. A
# guess, as no paper says over what its Reno and CUBIC ran.
DROP_TAIL_MS = 1.0

# DCTCP's K (Alizadeh et al., SIGCOMM'10, section 3.5; RFC 8257 leaves it to operators): 65 packets of 1500 bytes at 10
# Gbit/s, 20 at 1 Gbit/s. In proportion above; never below the latter, since windows have their floor in packets.
STEP_BYTES_PER_GBPS, STEP_LEAST_PACKETS = 6.5 * 1500, 20


def drop_tail_bytes(payload_rate_gbps: float) -> int:
    """Return the length of a drop-tail port's queue, in the papers' bytes."""
    return round(payload_rate_gbps * 1e9 / 8 * DROP_TAIL_MS / 1e3)


def step_bytes(line_rate_gbps: float, mtu_bytes: int, bytes_scale: float = 1.0) -> int:
    """Return the backlog above which a port marks every packet, with bytes divided by `bytes_scale`."""
    return round(max(STEP_BYTES_PER_GBPS * line_rate_gbps / bytes_scale, STEP_LEAST_PACKETS * mtu_bytes))
