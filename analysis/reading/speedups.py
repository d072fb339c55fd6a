# SPDX-License-Identifier: Apache-2.0
"""Speed-ups of jobs: an iteration time in one cell over that in another, with its interval."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from analysis.reading.cells import CellTrials
from analysis.reading.disturbance import widen
from analysis.statistics.intervals import Measured, estimate, find_modes, least, ratio
from roundabout.spec.base import Level


def baseline_of(
    cells: Iterable[CellTrials], cell: CellTrials, level: Level, factor: str = "variant"
) -> CellTrials | None:
    """Return the cell that equals `cell` in all factors but `factor`, where it has `level`; None if there is none."""
    around = cell.id.without_factor(factor)
    alike = (each for each in cells if each.id.without_factor(factor) == around)
    return next((each for each in alike if each.levels.get(factor, each.variant) == level), None)


def speedup(slow: CellTrials, fast: CellTrials, job: str | None) -> Measured | None:
    """Return the median iteration time of `slow` over that of `fast`, of `job` or, if None, of the least gaining one.

    Medians are over all iterations of all repetitions. None without a common job.
    """
    jobs = [each for each in sorted(slow.times.keys() & fast.times.keys()) if job in (None, each)]
    gains = [ratio(*(cell.estimate(each, np.median) for cell in (slow, fast))) for each in jobs]
    return least(gains) if gains else None


def speedup_of_mean(slow: CellTrials, fast: CellTrials, job: str) -> Measured:
    """Return the mean iteration time of a job in `slow` over that in `fast`."""
    return ratio(*(cell.estimate(job, np.mean) for cell in (slow, fast)))


def typical_speedup(slow: CellTrials, fast: CellTrials, job: str) -> Measured | None:
    """Return the median of a job in `slow` over that in `fast`, or mean over mean if either cell has two modes.

    None if the job is not in both cells.
    """
    both = [cell for cell in (slow, fast) if job in cell.times]
    if len(both) == 2 and any(find_modes(np.concatenate(cell.repetitions(job))) for cell in both):
        return speedup_of_mean(slow, fast, job)
    return speedup(slow, fast, job)


def speedup_of_slow(slow: CellTrials, fast: CellTrials, job: str) -> Measured:
    """Return the 90th percentile of iteration time of a job in `slow` over that in `fast`."""
    return ratio(*(cell.estimate(job, partial(np.quantile, q=0.9)) for cell in (slow, fast)))


def speedup_of_last_half(slow: CellTrials, fast: CellTrials, job: str) -> Measured:
    """Return the median iteration time of a job in `slow` over that in the second half of each repetition of `fast`."""
    later = [times[len(times) // 2 :] for times in fast.repetitions(job)]
    return ratio(slow.estimate(job, np.median), widen(estimate(later, np.median), fast.disturbance))


def speedup_of_tail(slow: CellTrials, fast: CellTrials, job: str) -> tuple[Measured, str]:
    """Return the 99th percentile of a job's iteration times in `slow` over that in `fast`, and an empty note.

    If either cell has too few iterations, return the ratio of the longest iterations, with a note that says so.
    """
    tails = [cell.estimate_tail(job) for cell in (slow, fast)]
    if tails[0] and tails[1]:
        return ratio(tails[0], tails[1]), ""
    both = [cell.repetitions(job) for cell in (slow, fast)]
    counts = [sum(map(len, each)) for each in both]
    longest = [max(float(times.max()) for times in each) for each in both]
    return (longest[0] / longest[1], None), f"max of {counts[0]} over {counts[1]}"
