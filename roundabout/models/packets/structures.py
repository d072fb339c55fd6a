# SPDX-License-Identifier: Apache-2.0
"""The structures that the packet-level engine takes and gives, as its C++ has them (native/c_api.cpp)."""

import ctypes
from ctypes import c_double, c_int64, c_uint32, c_uint64

import numpy as np

PS_PER_MS = 1_000_000_000
PS_PER_US = 1_000_000
NEVER = 2**63 - 1


class PortPlan(ctypes.Structure):
    """One direction of a link and the port that feeds it. The two directions of a link are neighbors, from an even one.

    A size below 0 means that there is no such limit; without `xoff_bytes` there is no PFC.
    """

    _fields_ = (
        ("payload_bytes_per_s", c_double),
        ("line_bytes_per_s", c_double),
        ("delay_ps", c_int64),
        ("queue_bytes", c_int64),
        ("kmin_bytes", c_int64),
        ("kmax_bytes", c_int64),
        ("pmax", c_double),
        ("xoff_bytes", c_int64),
        ("xon_bytes", c_int64),
        ("buffer_bytes", c_int64),
        ("host", c_int64),
        ("marks_on_arrival", c_int64),
        ("loss", c_double),
    )


class BufferPlan(ctypes.Structure):
    """The packet memory that a switch's ports share (native/switches/buffer.hpp). Sizes are in bytes."""

    _fields_ = (
        ("shared_bytes", c_int64),
        ("xon_offset_bytes", c_int64),
        ("alpha", c_double),
        ("is_lossless", c_int64),
    )


class NicPlan(ctypes.Structure):
    """The NICs of all hosts, and the seed of everything that the engine draws."""

    _fields_ = (
        ("payload_bytes", c_int64),
        ("header_bytes", c_int64),
        ("control_bytes", c_int64),
        ("around_bytes", c_int64),
        ("ack_bytes", c_int64),
        ("burst_packets", c_int64),
        ("pace_jitter", c_double),
        ("cnp_delay_ps", c_int64),
        ("cnp_jitter_ps", c_int64),
        ("timeout_ps", c_int64),
        ("seed", c_uint64),
    )


class ReactionPlan(ctypes.Structure):
    """DCQCN's parameters of a queue pair: those of transports/dcqcn/dcqcn_params.h, with times in ps."""

    _fields_ = (
        ("T_ps", c_int64),
        ("alpha_timer_ps", c_int64),
        ("cnp_gap_ps", c_int64),
        ("byte_counter_bytes", c_uint64),
        ("R_AI", c_uint64),
        ("R_HAI", c_uint64),
        ("R_min", c_uint64),
        ("R_max", c_uint64),
        ("F", c_uint32),
        ("g_q24", c_uint32),
        *((name, c_uint32) for name in ("clamp_target", "clamp_target_after_timer", "hyper_by_stage")),
        *((name, c_uint32) for name in ("alpha_by_timer", "alpha_initial_q24")),
        ("rate_on_first_cnp", c_uint64),
        ("cnp_scope", c_uint32),
        ("retransmission", c_uint32),
    )


class MltcpPlan(ctypes.Structure):
    """MLTCP's parameters: those of transports/mltcp/mltcp_params.h but `count_by`."""

    _fields_ = (
        ("iteration_bytes", c_uint64),
        *((name, c_uint32) for name in ("gap_us", "slope_q24", "intercept_q24", "learn_q24", "shape", "acts_on")),
    )


class CongestionPlan(ctypes.Structure):
    """The congestion control of a connection (native/tcp/congestion_control.h)."""

    _fields_ = tuple((name, c_uint32) for name in ("algorithm", "hystart", "g_q24"))


class TcpPlan(ctypes.Structure):
    """A TCP connection (native/tcp/connection.hpp). Sizes are in bytes, the initial window is in segments."""

    _fields_ = (
        *(
            (name, c_int64)
            for name in (
                *("mss_bytes", "header_bytes", "tso_bytes", "write_bytes", "window_bytes"),
                *("first_window_bytes", "grown_window_bytes", "initial_window"),
                *("rto_min_ps", "rto_initial_ps", "delayed_ack_ps", "ack_segments", "jitter_ps"),
                *("is_ecn", "has_tail_loss_probe", "restarts_after_idle", "is_paced"),
            )
        ),
        ("congestion", CongestionPlan),
    )


class ConnectionResult(ctypes.Structure):
    """The counters of a TCP connection and its present state. Windows are in segments."""

    _fields_ = (
        *((name, c_int64) for name in ("timeouts", "probes", "recoveries", "reductions_by_marks", "acks", "lost")),
        *((name, c_int64) for name in ("in_flight", "cwnd", "ssthresh", "srtt_ps", "min_rtt_ps")),
        *((name, c_uint64) for name in ("iterations", "iteration_bytes")),
        *((name, c_uint32) for name in ("alpha_q24", "F_q24")),
    )


class JobNumbers(ctypes.Structure):
    """A job's times in ps. Without a period it has no timetable; below 0 it never departs."""

    _fields_ = tuple(
        (name, c_int64)
        for name in ("workers", "iterations", "begins", "departs", "shift", "period", "threshold", "late")
    )


class PairResult(ctypes.Structure):
    """The packets of a queue pair and the counters of its reaction point."""

    _fields_ = (
        *((name, c_int64) for name in ("packets", "resent", "delivered", "marked", "acked")),
        *(
            (name, c_uint64)
            for name in ("cnps", "fast_increases", "additive_increases", "hyper_increases", "rate", "alpha_q24")
        ),
    )


class StreamPlan(ctypes.Structure):
    """Streams of cross traffic at a rate, as iperf's (native/cross_traffic/cross_traffic.hpp)."""

    _fields_ = (
        *((name, c_double) for name in ("bytes_per_s", "least_share")),
        *((name, c_int64) for name in ("streams", "most_streams", "write_bytes", "step_ps", "probe_ps")),
    )


class TrafficResult(ctypes.Structure):
    """The counters of a cross traffic: bytes in order at its receivers, packets, connections made, and streams."""

    _fields_ = tuple(
        (name, c_int64) for name in ("delivered", "packets", "resent", "arrived", "marked", "connections", "streams")
    )


FLOW = np.dtype([(name, "<i8") for name in ("at", "bytes", "pool")])
"""A planned flow of cross traffic: its start in ps from the load's start, its payload, and its pool's place."""

FLOW_RECORD = np.dtype([(name, "<i8") for name in ("start", "end")])
"""A flow's start, and the instant at which its receiver had all of it, in ps; below 0 if that did not happen."""

RECORD = np.dtype([(name, "<i8") for name in ("start", "compute_end", "end", "delay")])
"""An iteration of one worker: instants and a time, in ps."""

PORT_COLUMNS = ("tx_bytes", "tx_packets", "backlog_bytes", "drops", "marks", "pauses", "paused_ps")
QUEUE_COLUMNS = (*PORT_COLUMNS, "average_bytes")
BUFFER_COLUMNS = ("shared_bytes", "headroom_bytes", "most_bytes")
HOST_COLUMNS = ("marked", "cnps_sent", "cnps_handled", "out_of_sequence")
