# SPDX-License-Identifier: Apache-2.0
"""Ports and TCP connections of the packet-level engine, as the benchmarks of TCP have them."""

from typing import Any

from roundabout.models.packets import Engine, Fabric, Message
from roundabout.models.packets.structures import PS_PER_MS, PS_PER_US, Structure, make_structure
from roundabout.models.packets.tcp import ALGORITHMS
from roundabout.spec.frames import HEADER_BYTES, payload_share, segment_bytes

MTU = 1500
FOREVER = 1 << 40
"""Bytes: more than any benchmark sends."""


def port(gbps: float, host: int = -1, **own: Any) -> Structure:
    """Return a port of a host, or of a switch (-1), that drops nothing, with the values given in place of its own."""
    line = gbps * 1e9 / 8
    rates = {"payload_bytes_per_s": line * payload_share(MTU), "line_bytes_per_s": line}
    return make_structure("port_plan", **{**rates, "queue_bytes": -1, "xoff_bytes": -1, "host": host, **own})


def connection(algorithm: str, hystart: int = 1, **own: Any) -> Structure:
    """Return a connection between the model's hosts, with the values given in place of its own.

    Only DCTCP has ECN, unless `is_ecn` says otherwise.
    """
    hosts = Fabric().tcp
    plan = {
        "mss_bytes": segment_bytes(MTU),
        "header_bytes": HEADER_BYTES,
        "tso_bytes": hosts.tso_bytes,
        "write_bytes": hosts.write_bytes,
        "window_bytes": hosts.window_bytes,
        "initial_window": hosts.initial_window,
        "rto_min_ps": round(hosts.drop_tail_rto_min_ms * PS_PER_MS),
        "rto_initial_ps": 1000 * PS_PER_MS,
        "delayed_ack_ps": round(hosts.delayed_ack_ms * PS_PER_MS),
        "ack_segments": hosts.ack_segments,
        "jitter_ps": round(hosts.jitter_us * PS_PER_US),
        "is_ecn": algorithm == "dctcp",
        "has_tail_loss_probe": 1,
    }
    congestion = {"algorithm": ALGORITHMS.index(algorithm), "hystart": hystart, "g_q24": (1 << 24) // 16}
    return make_structure("tcp_plan", **{**plan, **own}, congestion=congestion)


def send_forever(engine: Engine, pair: int, begins_ps: int) -> None:
    """Let a connection always have something to send from an instant on."""
    job = engine.add_job(make_structure("job_plan", workers=2, iterations=1, begins_ps=begins_ps, departs_ps=-1))
    engine.add_phase(job, 1, [Message(pair, 0, 1, FOREVER)])
