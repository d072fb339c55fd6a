# SPDX-License-Identifier: Apache-2.0
"""Slowdowns of the jobs of a mix: the time from a job's start to its end, over its time alone."""

from collections.abc import Callable, Sequence

import numpy as np

from analysis.quantities import CachedReading, Case, QuantityRequest, quantity
from analysis.reading.job_slowdowns import JobSlowdowns, read_slowdowns
from analysis.statistics.intervals import Array, Measured, estimate, tail_estimate


@quantity("mean slowdown of jobs", unit="times", digits=3, by="variant")
def mean(request: QuantityRequest) -> list[Case]:
    """Return the mean over all jobs."""
    return _cases(request, lambda slowdowns: estimate(slowdowns, np.mean, at_least=1))


@quantity("90th percentile slowdown of jobs", unit="times", digits=3, by="variant")
def p90(request: QuantityRequest) -> list[Case]:
    """Return the 90th percentile over all jobs."""
    return _cases(request, lambda slowdowns: estimate(slowdowns, lambda own: float(np.quantile(own, 0.9)), at_least=1))


@quantity("99th percentile slowdown of jobs", unit="times", digits=3, by="variant")
def p99(request: QuantityRequest) -> list[Case]:
    """Return the 99th percentile over all jobs, which needs a thousand of them."""
    return _cases(request, tail_estimate)


def _cases(request: QuantityRequest, statistic: Callable[[Sequence[Array]], Measured | None]) -> list[Case]:
    cells = [
        each
        for each in request.reading.cached(_slowdowns)
        if request.of in (None, each.id.variant) and each.id.matches(request.at)
    ]
    found = [(each, statistic(each.slowdowns)) for each in cells]
    return [_case(each, *figure) for each, figure in found if figure is not None]


def _case(cell: JobSlowdowns, value: float, ci95: tuple[float, float] | None) -> Case:
    levels = {factor: str(level) for factor, level in cell.id.levels.items()}
    return Case(cell.id.name, value, ci95, levels | {"variant": cell.id.variant})


def _slowdowns(reading: CachedReading) -> list[JobSlowdowns]:
    return read_slowdowns(reading.run)
