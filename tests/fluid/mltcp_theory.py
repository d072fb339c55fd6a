# SPDX-License-Identifier: Apache-2.0
"""MLTCP's published theory of two like jobs, which tests hold the flow-level model against."""

import math


def offset_gain(offset: float, communication: float, slope: float, intercept: float) -> float:
    """Return how far two like jobs, `offset` apart, move apart further in an iteration.

    S D (aT - D) / (aT I + S D), with `communication` for aT, the time that a job takes to send alone (arXiv 2402.09589
    and HotNets'24). All times are in one unit; the optimum is an offset of aT.
    """
    return slope * offset * (communication - offset) / (communication * intercept + slope * offset)


def iterations_to_reach(part: float, from_part: float, slope: float, intercept: float) -> int:
    """Return the iterations in which two like jobs' offset grows from `from_part` to `part` of the optimum.

    By the recurrence of `offset_gain`: offset / (optimum - offset) grows (S + I) / I times in each iteration.
    """
    growth = math.log(part / (1 - part)) - math.log(from_part / (1 - from_part))
    return max(math.ceil(growth / math.log1p(slope / intercept)), 0)
