# SPDX-License-Identifier: Apache-2.0
"""One-sided tests whether a figure is larger by a factor in one set of repetitions than in another."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr


def p_value_of_excess(one: Sequence[float], other: Sequence[float], ratio: float) -> float:
    """Return the probability (p) of the repetitions if `other` is at most `ratio` times `one`.

    One-sided t of the logarithms, whose variances may differ (Welch 1947). Both are positive, and at least two.
    """
    logs = [np.log(each) for each in (one, other)]
    parts = [float(np.var(each, ddof=1)) / len(each) for each in logs]
    off = float(np.mean(logs[1]) - np.mean(logs[0])) - math.log(ratio)
    if sum(parts) == 0:
        return 0.0 if off > 0 else 1.0
    freedom = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, logs, strict=True))
    return float(stdtr(freedom, -off / math.sqrt(sum(parts))))


def correct_by_holm(likely: Sequence[float]) -> list[float]:
    """Return each p corrected for their number (Holm 1979): the chance that any at or below it is one by chance."""
    ranked = sorted(range(len(likely)), key=likely.__getitem__)
    adjusted, most = [0.0] * len(likely), 0.0
    for place, index in enumerate(ranked):
        most = max(most, min(1.0, likely[index] * (len(likely) - place)))
        adjusted[index] = most
    return adjusted
