# SPDX-License-Identifier: Apache-2.0
"""Speed-ups of iteration times of one variant over another."""

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

from analysis.quantities import Case, QuantityRequest, quantity
from analysis.reading.cells import CellTrials
from analysis.reading.speedups import speedup, speedup_of_last_half, speedup_of_mean, speedup_of_slow, speedup_of_tail
from analysis.statistics.intervals import Measured, mean_of


@quantity("speedup of median iteration time", unit="times", needs=("of", "over"))
def of_median(request: QuantityRequest) -> list[Case]:
    """Return the median iteration time of variant `over` over that of `of`, for `job` or the job that gains least."""
    slow, fast = (next(iter(request.cells_of(variant)), None) for variant in (request.over, request.of))
    found = speedup(slow, fast, request.job) if slow and fast else None
    return [Case(request.job or "least", *found)] if found else []


@quantity("speedup of mean iteration time", unit="times", needs=("over",))
def of_mean(request: QuantityRequest) -> list[Case]:
    """Return the mean iteration time of variant `over` over that of `of`, by job."""
    return _each_job(request, lambda slow, fast, job: (speedup_of_mean(slow, fast, job), ""))


@quantity("speedup of median iteration time, last half", unit="times", needs=("over",))
def of_last_half(request: QuantityRequest) -> list[Case]:
    """Return the median iteration time of `over` over that of the second half of each repetition of `of`, by job."""
    return _each_job(request, lambda slow, fast, job: (speedup_of_last_half(slow, fast, job), ""))


@quantity("speedup of 99 % tail of iteration time", unit="times", needs=("over",))
def of_tail(request: QuantityRequest) -> list[Case]:
    """Return the ratio of 99 % tails, or of the longest iterations if a variant has fewer than a thousand."""
    return _each_job(request, speedup_of_tail)


@quantity("speedup of 90 % tail of iteration time", unit="times", needs=("over",))
def of_slow(request: QuantityRequest) -> list[Case]:
    """Return the 90th percentile of iteration time under variant `over` over that of `of`, by job."""
    return _each_job(request, lambda slow, fast, job: (speedup_of_slow(slow, fast, job), ""))


@quantity("speedup of mean iteration time, mean of jobs", unit="times", digits=3, needs=("over",))
def of_jobs(request: QuantityRequest) -> list[Case]:
    """Return the mean of the jobs' speed-ups of mean iteration time.

    It has no interval, because advice predicts the figure of one run.
    """
    found: dict[str, tuple[CellTrials, list[float]]] = {}
    for fast, slow, job in request.pairs_with_baseline():
        found.setdefault(fast.name, (fast, []))[1].append(speedup_of_mean(slow, fast, job)[0])
    return [Case(request.name_of(cell), fmean(gains), None, cell.properties).exactly for cell, gains in found.values()]


@quantity("speedup of mean iteration time, mean of cells", unit="times", digits=3, needs=("of", "over"))
def of_cells(request: QuantityRequest) -> list[Case]:
    """Return the mean over cells, such as seeds of hashes, of the speed-ups of mean iteration time, by job.

    Its interval follows from the scatter of the cells, as if each were a repetition.
    """
    found: dict[str, list[float]] = {}
    for fast, slow, job in request.pairs_with_baseline():
        found.setdefault(job, []).append(speedup_of_mean(slow, fast, job)[0])
    return [Case(job, *mean_of(gains), {"job": job}, is_drawn=True) for job, gains in found.items()]


def _each_job(
    request: QuantityRequest, of: Callable[[CellTrials, CellTrials, str], tuple[Measured, str]]
) -> list[Case]:
    cases = []
    for fast, slow, job in request.pairs_with_baseline():
        measured, called = of(slow, fast, job)
        case = request.case(fast, job, *measured)
        cases.append(replace(case, name=f"{case.name}, {called}") if called else case)
    return cases
