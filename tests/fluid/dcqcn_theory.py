# SPDX-License-Identifier: Apache-2.0
"""The published fixed point of DCQCN (CoNEXT 2016)."""

import numpy as np
from scipy.optimize import brentq

from roundabout.models.fluid.dcqcn import PACKET_BYTES, Reaction

MBPS = 0.125  # bytes/us
SIGCOMM15 = {
    "T_us": 55.0, "F": 5, "byte_counter_bytes": 1e7, "R_AI": 40 * MBPS, "R_HAI": 200 * MBPS, "R_min": 100 * MBPS,
    "R_max": 40_000 * MBPS, "g": 1 / 256, "alpha_timer_us": 55.0, "cnp_gap_us": 50.0,
    "clamp_target": 1, "clamp_target_after_timer": 1, "hyper_by_stage": 1, "alpha_by_timer": 0, "alpha_initial": 0,
}  # fmt: skip


def reaction(flows: int = 1, **changed: float) -> Reaction:
    return Reaction(**{name: np.full(flows, value, float) for name, value in {**SIGCOMM15, **changed}.items()})


def conext_16(reacting: Reaction, flows: int, capacity: float, packet_bytes: float = PACKET_BYTES) -> float:
    """CoNEXT'16, equation 11: the share of marks at the fixed point, solved as it stands, in packets and us.

    Its stages of fast recovery count from 0, those of SIGCOMM'15's algorithm (and ours) from 1.
    """
    rate, tau, tau_alpha = capacity / flows / packet_bytes, reacting.cnp_gap_us[0], reacting.alpha_timer_us[0]
    B, T, F = reacting.byte_counter_bytes[0] / packet_bytes, reacting.T_us[0], reacting.F[0] - 1  # noqa: N806
    R_AI = reacting.R_AI[0] / packet_bytes  # noqa: N806

    def difference(p: float) -> float:
        a, alpha = (-np.expm1(times * rate * np.log1p(-p)) for times in (tau, tau_alpha))
        b, d = (p * (1 - p) ** packets / -np.expm1(packets * np.log1p(-p)) for packets in (B, T * rate))
        c, e = b * (1 - p) ** (F * B), d * (1 - p) ** (F * T * rate)
        return float(np.log(a * a * alpha / ((b + d) * (c + e))) - np.log(tau**2 * R_AI * rate))

    return float(brentq(difference, 1e-7, 0.5))
