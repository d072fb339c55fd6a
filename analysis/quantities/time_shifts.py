# SPDX-License-Identifier: Apache-2.0
"""Quantities of jobs under time-shifts: compatibility, communication time, delays and drift."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from analysis.quantities import CachedReading, Case, QuantityRequest, mean_of, quantity
from analysis.reading.cells import CellTrials
from analysis.reading.data import Series, by_iteration, query
from analysis.statistics.intervals import Array, Measured, estimate, ratio
from roundabout.models.cassini import lowest_score as score_of

MINUTE_NS, MINUTE_MS = 60e9, 60e3


@quantity("compatibility score", by="variant")
def score(request: QuantityRequest) -> list[Case]:
    """Return Cassini's compatibility score (equation 4.2) on the link with the lowest; capacity is the payload rate."""
    found = ((cell, request.reading.cached(_scores).get(cell.id.name)) for cell in request.cells)
    return [Case(request.name_of(cell), least, None, cell.properties) for cell, least in found if least is not None]


@quantity("median communication time", unit="ms", digits=1)
def median(request: QuantityRequest) -> list[Case]:
    """Return the median of the slowest worker's time from the end of compute to the end of communication."""
    return request.each_repetition(request.reading.cached(communication_times), partial(estimate, statistic=np.median))


@quantity("median communication time over that", unit="times", needs=("over",))
def of_median(request: QuantityRequest) -> list[Case]:
    """Return the median communication time over that under variant `over`, for example `alone`, by job."""
    return _over_baseline(request, np.median)


@quantity("99 % tail of communication time over that", unit="times", needs=("over",))
def of_tail(request: QuantityRequest) -> list[Case]:
    """Return the 99th percentile of communication time over that under variant `over`, by job."""
    return _over_baseline(request, partial(np.quantile, q=0.99))


@quantity("adjustments per minute", unit="a minute", digits=1)
def adjustments(request: QuantityRequest) -> list[Case]:
    """Return the number of iterations per minute in which an agent delays some worker of a job with a timetable."""
    return request.each_repetition(request.reading.cached(_adjustments), partial(mean_of, at_least=0))


@quantity("drift from the timetable", unit="ms/min", digits=1)
def drift(request: QuantityRequest) -> list[Case]:
    """Return by how much per minute a job's begins move against its timetable; positive if they become later.

    The figure is the slope of a line through the begins of the first worker's iterations, before any delay. A worker
    that is late once and catches up has no drift.
    """
    return request.each_repetition(request.reading.cached(_drifts), mean_of)


def timetable_figures(reading: CachedReading, cell: CellTrials) -> dict[str, Measured]:
    """Return, over a cell's jobs with timetables, the most `adjustments` per minute and the largest `drift`, ms/min."""
    request = QuantityRequest(reading)
    found = {}
    for name, make, least in (("adjustments", _adjustments, 0.0), ("drift", _drifts, -math.inf)):
        each = [request.repetitions(reading.cached(make), cell, job) for job in request.jobs(cell)]
        reported = [mean_of(values, at_least=least) for values in each if values]
        if reported:
            found[name] = max(reported, key=lambda each: abs(each[0]))
    return found


def _over_baseline(request: QuantityRequest, statistic: Callable[[Array], float]) -> list[Case]:
    times_ms = request.reading.cached(communication_times)
    return [
        request.case(
            cell,
            job,
            *ratio(*(estimate(request.repetitions(times_ms, each, job), statistic) for each in (cell, base))),
        )
        for cell, base, job in request.pairs_with_baseline()
    ]


def _scores(reading: CachedReading) -> dict[str, float | None]:
    return {cell.id.name: score_of(cell.spec) for cell in reading.cells if cell.spec.has_concurrent_jobs}


def communication_times(reading: CachedReading) -> Series:
    """Return the time from the end of compute to the end of communication of the slowest worker, by iteration."""
    return by_iteration(reading.run, "max(communication_ms)")


def _drifts(reading: CachedReading) -> dict[tuple[str, str], float]:
    periods_ms = {
        (trial["trial"], name): timetable["period_ms"]
        for trial in reading.run.trials()
        for name, job in trial["spec"]["jobs"].items()
        if (timetable := job.get("timetable"))
    }
    rows = query(
        reading.run,
        """
        select trial, job, list(ms order by iteration) as begins_ms from (
          select trial, job, iteration, coalesce(delay_ms, 0)
            + (start_ns - min(start_ns) over (partition by trial, job)) / 1e6 as ms
          from iterations where rank = 0
        ) group by all
        """,
    )
    begun = {(row["trial"], row["job"]): np.array(row["begins_ms"]) for row in rows.to_pylist()}
    return {
        key: _drift(begins_ms, periods_ms[key])
        for key, begins_ms in begun.items()
        if key in periods_ms and len(begins_ms) > 1
    }


def _drift(begins_ms: Array, period_ms: float) -> float:
    """Return the drift in ms a minute. A job that misses turns is as late as beside the nearest instant."""
    off_ms = np.unwrap(begins_ms % period_ms, period=period_ms)
    return float(np.polyfit(begins_ms / MINUTE_MS, off_ms, 1)[0])


def _adjustments(reading: CachedReading) -> dict[tuple[str, str], float]:
    rows = query(
        reading.run,
        """
        select trial, job, sum(held::int) / (max(end_ns) - min(start_ns)) as per_ns from (
          select trial, job, iteration, max(delay_ms) > 0 as held, min(start_ns) as start_ns, max(comm_end_ns) as end_ns
          from iterations where delay_ms is not null group by all
        ) group by all
        """,
    )
    return {(row["trial"], row["job"]): MINUTE_NS * row["per_ns"] for row in rows.to_pylist()}
