# SPDX-License-Identifier: Apache-2.0
"""The learning progress of jobs that really train."""

from collections.abc import Sequence

from analysis.quantities import CachedReading, Case, QuantityRequest, mean_of, quantity
from analysis.reading.data import Series, by_iteration
from analysis.statistics.intervals import Array, Measured

TEN_ITERATIONS = 10  # over which losses are averaged: a single batch's loss says little


@quantity("loss left", unit="%", digits=1)
def left(request: QuantityRequest) -> list[Case]:
    """Return the mean loss of a repetition's last ten iterations as a share of that of its first ten.

    Jobs with fewer than twenty iterations have no figure.
    """
    return request.each_repetition(request.reading.cached(_losses), _remaining_loss)


def _remaining_loss(losses: Sequence[Array]) -> Measured:
    return mean_of([100 * each[-TEN_ITERATIONS:].mean() / each[:TEN_ITERATIONS].mean() for each in losses])


def _losses(reading: CachedReading) -> Series:
    """Return the loss of repetitions that are long enough, the mean over workers."""
    found = by_iteration(reading.run, "avg(loss)")
    return {key: losses for key, losses in found.items() if len(losses) >= 2 * TEN_ITERATIONS}
