# SPDX-License-Identifier: Apache-2.0
"""TCP connections of a trial as the engine takes them: what its queues and settings make of Linux' own values."""

from collections.abc import Mapping
from typing import Final

from roundabout.models.packets.hardware_defaults import TcpHosts
from roundabout.models.packets.structures import PS_PER_MS, PS_PER_US, Structure, make_structure
from roundabout.spec import TrialSpec
from roundabout.spec.frames import HEADER_BYTES, segment_bytes
from roundabout.spec.transports import Transport

ALGORITHMS: Final = ("reno", "cubic", "dctcp")
"""By their numbers in native/c_api.h."""
NAMES: Final = (*ALGORITHMS, *(f"mltcp_{each}" for each in ALGORITHMS))
RTO_INITIAL_MS = 1000
"""Before the first round-trip time (RFC 6298)."""
ONE_Q24 = 1 << 24


def tcp_settings(spec: TrialSpec, hosts: TcpHosts) -> dict[str, int]:
    """Return the fields of a tcp_plan that all connections of a trial share, by the rules of the lab's hosts.

    Queues that drop need tail-loss probes and short timeouts; queues that mark need ECN.
    """
    drops, requested = spec.queue == "drop-tail", spec.tcp
    return {
        "mss_bytes": segment_bytes(spec.topology.mtu_bytes),
        "header_bytes": HEADER_BYTES,
        "tso_bytes": hosts.tso_bytes,
        "write_bytes": hosts.write_bytes,
        "window_bytes": hosts.marked_window_bytes if spec.queue == "thresholds" else hosts.window_bytes,
        "first_window_bytes": hosts.first_window_bytes,
        "grown_window_bytes": hosts.grown_window_bytes,
        "initial_window": hosts.initial_window,
        "rto_min_ps": round((hosts.drop_tail_rto_min_ms if drops else hosts.rto_min_ms) * PS_PER_MS),
        "rto_initial_ps": RTO_INITIAL_MS * PS_PER_MS,
        "delayed_ack_ps": round(hosts.delayed_ack_ms * PS_PER_MS),
        "ack_segments": 1 if requested.delayed_acks is False else hosts.ack_segments,
        "jitter_ps": round(hosts.jitter_us * PS_PER_US),
        "is_ecn": not drops if requested.ecn is None else requested.ecn,
        "has_tail_loss_probe": drops if requested.tail_loss_probes is None else requested.tail_loss_probes,
        "restarts_after_idle": hosts.restarts_after_idle,
        "is_paced": hosts.is_paced,
        "hystart": hosts.uses_hystart,
    }


def connection_plan(settings: Mapping[str, int], transport: Transport, values: Mapping[str, float | str]) -> Structure:
    """Return the plan of a connection. What needs marks answers to them in any case."""
    algorithm = transport.name.removeprefix("mltcp_")
    congestion = {
        "algorithm": ALGORITHMS.index(algorithm),
        "hystart": settings["hystart"],
        "g_q24": round(float(values.get("g", 0)) * ONE_Q24),
    }
    shared = {name: value for name, value in settings.items() if name != "hystart"}
    return make_structure(
        "tcp_plan", **{**shared, "is_ecn": shared["is_ecn"] or algorithm == "dctcp"}, congestion=congestion
    )
