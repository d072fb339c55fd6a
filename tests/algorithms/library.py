# SPDX-License-Identifier: Apache-2.0
"""The transports' C code as a library: build/lib/libalgorithms.so, and the structures that its functions take."""

import ctypes
from collections.abc import Sequence
from ctypes import c_uint16 as u16, c_uint32 as u32, c_uint64 as u64
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

ONE_Q24 = 1 << 24
LIBRARY = ctypes.CDLL(str(Path(__file__).parents[2] / "build/lib/libalgorithms.so"))
for name in ("iteration_ratio", "aggressiveness", "aggressiveness_now", "aggressiveness_increases"):
    getattr(LIBRARY, name).restype = u32
for name in (
    *("marking_cuts", "aggressiveness_decreases", "times", "pacing_debt_paces", "burst_paces"),
    *("swift_targets", "swift_paces"),
):
    getattr(LIBRARY, name).restype = u64

CLOCKS = st.sampled_from([0, 1, 2**31 - 50_000, 2**32 - 50_000])
"""Where a clock of 32 bits may stand when a trial begins: it wraps soon after the last."""


class Structure(ctypes.Structure):
    """One of C's, whose members tests may print."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name, *_ in self._fields_)})"


def members(kind: Any, names: str) -> Sequence[tuple[str, Any]]:
    """Some of a structure's members, all of one type."""
    return [(name, kind) for name in names.split()]


class DcqcnParams(Structure):
    """struct dcqcn_params: rates in bytes/s."""

    _fields_ = (
        *members(u32, "T_us F"),
        *members(u64, "byte_counter_bytes R_AI R_HAI R_min R_max"),
        *members(u32, "g_q24 alpha_timer_us cnp_gap_us cnp_delay_us clamp_target"),
        *members(u32, "clamp_target_after_timer hyper_by_stage alpha_by_timer alpha_initial_q24"),
        *members(u64, "rate_on_first_cnp"),
    )


class DcqcnCounters(Structure):
    """struct dcqcn_counters; what is derived takes no room."""

    _fields_ = (
        *members(u64, "acks active_us segments segments_marked cnps held_us losses"),
        *members(u64, "asked_bytes paced_bytes fast_increases additive_increases hyper_increases rate"),
        *members(u32, "alpha_q24 stage"),
    )


class ReactionPoint(Structure):
    """struct reaction_point."""

    _fields_ = (
        *members(u64, "R_C R_T bytes"),
        *members(u32, "alpha_q24 increased_us alpha_us"),
        *members(u16, "timer_stage byte_stage"),
        *members(u32, "heard_cnp"),
        ("was_cut", ctypes.c_bool),
    )


class HeldCnps(Structure):
    """struct held_cnps."""

    _fields_ = (*members(u32, "first_us last_us"), ("count", u16), ("is_marked", ctypes.c_bool))


class DctcpParams(Structure):
    """struct dctcp_params."""

    _fields_ = (("g_q24", u32),)


class Marking(Structure):
    """struct marking."""

    _fields_ = tuple(members(u32, "alpha_q24 delivered delivered_ce window_end"))


class Cwnd(Structure):
    """struct cwnd."""

    _fields_ = tuple(members(u32, "segments ssthresh acked reduced_by reduced_end"))


SHAPES = ("linear", "quadratic", "reciprocal", "decreasing")
"""In the order of mltcp_params.h."""


class MltcpParams(Structure):
    """struct mltcp_params."""

    _fields_ = (
        *members(u32, "shape slope_q24 intercept_q24 acts_on count_by"),
        ("iteration_bytes", u64),
        *members(u32, "gap_us learn_q24"),
    )


class Iteration(Structure):
    """struct iteration."""

    _fields_ = (
        *members(u64, "sent learned_bytes silence_us last_ack_us forget_us ended"),
        ("seen_us", u64 * 32),
        ("whole", u32),
    )


class SwiftParams(Structure):
    """struct swift_params: times in ns."""

    _fields_ = (
        *members(u32, "base_target hop fs_range fs_min_cwnd_q24 fs_max_cwnd_q24 ai_q24 beta_q24 max_mdf_q24"),
        *members(u32, "min_cwnd_q24 max_cwnd initial_cwnd retx_reset rto_min reordering"),
    )


class SwiftCounters(Structure):
    """struct swift_counters."""

    _fields_ = tuple(members(u64, "increases decreases losses"))


class SwiftFlow(Structure):
    """struct swift_flow: times in ns."""

    _fields_ = (
        *members(u64, "path_target least_q24 span_q24 cwnd_q24 rtt decreased_at"),
        ("timeouts", u32),
    )


class NsccParams(Structure):
    """struct nscc_params: times in ns."""

    _fields_ = (
        ("line", u64),
        *members(u32, "network_rtt target qa_gate gamma_q24 initial_cwnd rto_min reordering"),
    )


class NsccCounters(Structure):
    """struct nscc_counters."""

    _fields_ = tuple(members(u64, "fair_increases proportional_increases fast_increases decreases quick_adapts losses"))


class NsccFlow(Structure):
    """struct nscc_flow: times in ns."""

    _fields_ = (
        *members(u64, "network_rtt target proportional fair eta"),
        *members(u32, "fast_q24 packet_bytes"),
        *members(u64, "cwnd max_cwnd base_rtt average_delay_q16 increase received achieved ignored to_ignore"),
        *members(u64, "fast_bytes adapt_at decreased_at adjusted_at"),
        *members(ctypes.c_bool, "is_fast must_adapt"),
    )
