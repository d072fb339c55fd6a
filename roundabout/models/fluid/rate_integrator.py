# SPDX-License-Identifier: Apache-2.0
"""Integration of rates that depend on the sent bytes: one step, and the mean rates of any part of it."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial.legendre import leggauss

TOLERANCE = 1e-10
"""The estimated error of what a stream sends in a step, over its job's bytes of an iteration."""

MOST = 100
"""Times TOLERANCE: the most that it may be off. Where rates bend, the method's own estimate may be small by chance."""

PLACES, PARTS = (leggauss(5)[0] + 1) / 2, leggauss(5)[1] / 2
"""Gauss' quadrature from 0 to 1: what flows is added up once more, from rates at other instants than the method's."""

Rates = Callable[[Sequence[float]], Sequence[float]]
"""Of streams, in bytes/ms, by what each has sent since the step began."""

MeanRates = Callable[[float], Sequence[float]]
"""Of streams, in bytes/ms, over so many ms from where the step began."""


def integrate_step(rates: Rates, within_bytes: Sequence[float], at_most_ms: float) -> tuple[float, MeanRates]:
    """Return the length of a step that keeps each stream's bytes within `within_bytes`, and its mean rates.

    By Dormand and Prince's method of order 8 (Hairer, Norsett and Wanner, II.5), which shortens steps where rates bend.
    """
    from scipy.integrate import DOP853  # noqa: PLC0415 - slow to import, and where weights stay nobody needs it

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
    if (np.abs(flowed - solver.y) > MOST * np.array(within_bytes)).any():
        return integrate_step(rates, within_bytes, whole_ms / 2)
    return whole_ms, lambda ms: (sent(ms) / ms).tolist()
