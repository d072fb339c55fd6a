# SPDX-License-Identifier: Apache-2.0
"""The learning progress of jobs that really train."""

from collections.abc import Sequence

from analysis.quantities import Asked, Case, Reading, mean_of, quantity
from analysis.reading.data import Series, by_iteration
from analysis.statistics.intervals import Array, Measured

PART = 10  # iterations' mean: a single batch's loss says little


@quantity("loss left", unit="%", digits=1)
def left(asked: Asked) -> list[Case]:
    """Return the mean loss of a repetition's last ten iterations over that of its first ten; of jobs that train twenty."""
    return asked.each_repetition(asked.reading.once(_losses), _left)


def _left(losses: Sequence[Array]) -> Measured:
    return mean_of([100 * each[-PART:].mean() / each[:PART].mean() for each in losses])


def _losses(reading: Reading) -> Series:
    """Return the loss of repetitions that are long enough, the mean over workers."""
    found = by_iteration(reading.run, "avg(loss)")
    return {key: losses for key, losses in found.items() if len(losses) >= 2 * PART}
