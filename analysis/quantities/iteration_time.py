# SPDX-License-Identifier: Apache-2.0
"""Iteration times, by job."""

import numpy as np

from analysis.quantities import Case, QuantityRequest, quantity
from analysis.statistics.intervals import Array, mean_of


@quantity("median iteration time", unit="ms", digits=1)
def median(request: QuantityRequest) -> list[Case]:
    """Median of all iterations of all repetitions."""
    return request.each_job(np.median)


@quantity("mean iteration time", unit="ms", digits=1)
def mean(request: QuantityRequest) -> list[Case]:
    """Mean of all iterations of all repetitions."""
    return request.each_job(np.mean)


@quantity("flow completion time", unit="us", digits=2)
def completion(request: QuantityRequest) -> list[Case]:
    """Return the mean of a job's iterations, for jobs that send once: a flow, or a collective."""
    return request.each_job(lambda times: 1e3 * float(np.mean(times)))


@quantity("99 % tail of iteration time", unit="ms", digits=1)
def tail(request: QuantityRequest) -> list[Case]:
    """Return the time that one iteration in a hundred exceeds; not measured with fewer than a thousand iterations."""
    found = ((cell, job, cell.estimate_tail(job)) for cell in request.cells for job in request.jobs(cell))
    return [request.case(cell, job, *measured) for cell, job, measured in found if measured]


@quantity("drift of iteration time", unit="%", digits=1)
def drift(request: QuantityRequest) -> list[Case]:
    """Return the excess of the mean of a repetition's last quarter of iterations over that of its first quarter."""
    return [
        request.case(cell, job, *mean_of([_drift(times) for times in cell.repetitions(job)]))
        for cell in request.cells
        for job in request.jobs(cell)
    ]


def _drift(times: Array) -> float:
    quarter = max(len(times) // 4, 1)
    return 100 * float(times[-quarter:].mean() / times[:quarter].mean() - 1)
