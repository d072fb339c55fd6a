# SPDX-License-Identifier: Apache-2.0
"""Integration of rates that depend on the sent bytes: one step, and the mean rates over any part of the step."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial.legendre import leggauss

TOLERANCE = 1e-10
"""Largest estimated error of a stream's bytes in a step, as a share of its job's bytes of an iteration."""

MAX_OVERSHOOT = 100
"""Largest real error as a multiple of TOLERANCE. Where rates bend, the method's own estimate may be small by chance."""

PLACES, PARTS = (leggauss(5)[0] + 1) / 2, leggauss(5)[1] / 2
"""Points and weights of Gauss' quadrature from 0 to 1, which checks a step's bytes with rates at other instants."""

Rates = Callable[[Sequence[float]], Sequence[float]]
"""Returns the streams' rates, bytes/ms, for the bytes that each has sent since the step began."""

MeanRates = Callable[[float], Sequence[float]]
"""Returns the streams' mean rates, bytes/ms, over the given ms from the step's begin."""


def integrate_step(rates: Rates, within_bytes: Sequence[float], at_most_ms: float) -> tuple[float, MeanRates]:
    """Return the length, ms, of a step in which each stream's error is within `within_bytes`, and its mean rates.

    The step lasts at most `at_most_ms`. The method is Dormand and Prince's of order 8 (Hairer, Norsett and Wanner,
    II.5), which shortens steps where rates bend.
    """
    from scipy.integrate import DOP853  # noqa: PLC0415 - slow to import, and not needed with constant weights

    solver = DOP853(
        lambda _ms, sent: np.array(rates(sent.tolist())),
        0.0,
        np.zeros(len(within_bytes)),
        at_most_ms,
        first_step=at_most_ms,
        rtol=1e-13,  # next to nothing: `within_bytes` decides
        atol=np.array(within_bytes),
    )
    solver.step()
    whole_ms, sent = float(solver.t), solver.dense_output()
    flowed = whole_ms * (PARTS @ [rates(sent(place * whole_ms).tolist()) for place in PLACES])
    if (np.abs(flowed - solver.y) > MAX_OVERSHOOT * np.array(within_bytes)).any():
        return integrate_step(rates, within_bytes, whole_ms / 2)
    return whole_ms, lambda ms: (sent(ms) / ms).tolist()
