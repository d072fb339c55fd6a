# SPDX-License-Identifier: Apache-2.0
"""One-sided tests for a figure that is larger by a factor in one set of repetitions than in another."""

import math
from collections.abc import Sequence

import numpy as np
import scipy


def p_value_of_excess(one: Sequence[float], other: Sequence[float], ratio: float) -> float:
    """Return the probability (p) of such repetitions if the mean of `other` is at most `ratio` times that of `one`.

    The test is a one-sided t test of logarithms with unequal variances (Welch 1947). Each side needs at least two
    positive figures.
    """
    logs = [np.log(each) for each in (one, other)]
    parts = [float(np.var(each, ddof=1)) / len(each) for each in logs]
    off = float(np.mean(logs[1]) - np.mean(logs[0])) - math.log(ratio)
    if sum(parts) == 0:
        return 0.0 if off > 0 else 1.0
    freedom = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, logs, strict=True))
    return float(scipy.special.stdtr(freedom, -off / math.sqrt(sum(parts))))


def correct_by_holm(likely: Sequence[float]) -> list[float]:
    """Return each p corrected for the number of tests (Holm 1979)."""
    ranked = sorted(range(len(likely)), key=likely.__getitem__)
    adjusted, most = [0.0] * len(likely), 0.0
    for place, index in enumerate(ranked):
        most = max(most, min(1.0, likely[index] * (len(likely) - place)))
        adjusted[index] = most
    return adjusted
