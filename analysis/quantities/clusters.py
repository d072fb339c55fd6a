# SPDX-License-Identifier: Apache-2.0
"""Comparisons of a cluster's schedulers over all iterations of all jobs, pooled as in the interleaving thesis.

Two schedulers are compared over the repetitions that both have, whose trials share trace and guesses. Jobs do the same
work under both schedulers, but not always in equally many iterations, because their numbers of workers may differ.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from analysis.quantities import CachedReading, Case, QuantityRequest, quantity
from analysis.reading.timelines import (
    ClusterCell,
    ClusterTrial,
    JobHistory,
    cell_of_variant,
    pair_by_repetition,
    read_clusters,
)
from analysis.statistics.intervals import MIN_TAIL, TAIL, Array, Interval, estimate, mean_of, paired_ratio, ratio

Statistic = Callable[[Array], float]
p99: Statistic = partial(np.quantile, q=TAIL)


@quantity("speedup of mean iteration time over all jobs", unit="times", needs=("over",), by="variant")
def of_mean(request: QuantityRequest) -> list[Case]:
    """Return the ratio of mean iteration times of all jobs together, under variant `over` over those under `of`."""
    return _speedups(request, np.mean)


@quantity("speedup of 99th percentile iteration time over all jobs", unit="times", needs=("over",), by="variant")
def of_tail(request: QuantityRequest) -> list[Case]:
    """Return the 99th percentile under variant `over` over that under `of`; both need a thousand iterations."""
    return _speedups(request, p99, MIN_TAIL)


@quantity("mean iteration time over a dedicated cluster's", unit="times", by="variant")
def slowed(request: QuantityRequest) -> list[Case]:
    """Return the mean over iterations of iteration time over the time with the same workers in a dedicated cluster."""
    return [_case(cell, *estimate(cell.slowdowns, np.mean)) for cell in _cells(request, request.of)]


@quantity("fewer ECN marks per iteration of a model", unit="times", digits=1, needs=("over",), by="model")
def fewer_marks(request: QuantityRequest) -> list[Case]:
    """Return, by model, the mean ECN marks per iteration under variant `over` over those under `of`.

    The ratio is infinite without marks under `of`. Models without marks under `over` are left out.
    """
    cases = []
    for of, over in _pairs(request):
        for model in of.models:
            before, after = (
                estimate(own, np.mean, at_least=0) if (own := each.marks(model)) else None for each in (over, of)
            )
            if before and after and before[0] > 0:
                found = ratio(before, after) if after[0] > 0 else (np.inf, None)
                cases.append(_case(of, *found, model=model))
    return cases


@quantity("mean job completion time", unit="s", digits=0, by="variant")
def completion(request: QuantityRequest) -> list[Case]:
    """Return the mean time from a job's arrival to its end, over jobs that ended; the mean of repetitions."""
    return _lives(request, lambda life: life.completion_s)


@quantity("mean queueing delay", unit="s", digits=0, by="variant")
def queueing(request: QuantityRequest) -> list[Case]:
    """Return the mean time from a job's arrival to its first placement, over placed jobs; the mean of repetitions."""
    return _lives(request, lambda life: life.queueing_s)


@quantity("worst finish-time fairness", unit="times", by="variant")
def fairness(request: QuantityRequest) -> list[Case]:
    """Return the largest ratio of a job's time in the cluster to that in a dedicated one; the mean of repetitions."""
    return _lives(request, lambda life: life.fairness, max)


@quantity("GPU utilization of jobs with traffic", unit="%", digits=1, by="variant")
def utilization(request: QuantityRequest) -> list[Case]:
    """Return the share of time for which allocated GPUs compute completed iterations; the mean of repetitions."""
    return [
        _case(cell, *mean_of([100 * trial.gpu_utilization for trial in cell.trials.values()], at_least=0))
        for cell in _cells(request, request.of)
    ]


@quantity("gain of GPU utilization of jobs with traffic", unit="times", needs=("over",), by="variant")
def utilization_gain(request: QuantityRequest) -> list[Case]:
    """Return the mean GPU utilization under variant `of` over that under `over`."""

    def pairs(of: ClusterCell, over: ClusterCell) -> list[tuple[Array, Array]]:
        return pair_by_repetition(of, over, lambda trial: np.array([trial.gpu_utilization]))

    return [_case(of, *paired_ratio(pairs(of, over), np.mean)) for of, over in _pairs(request)]


@quantity("jobs that swaps move an hour", unit="1/h", digits=1, by="variant")
def migrations(request: QuantityRequest) -> list[Case]:
    """Return the number of jobs that swaps or `fragments` move, each time anew, in an hour; mean of repetitions."""
    return [
        _case(cell, *mean_of([trial.migrations_an_hour for trial in cell.trials.values()], at_least=0))
        for cell in _cells(request, request.of)
    ]


def _case(cell: ClusterCell, value: float, ci95: Interval | None, **properties: str) -> Case:
    name = ", ".join([cell.id.name, *properties.values()])
    levels = {factor: str(level) for factor, level in cell.id.levels.items()}
    return Case(name, value, ci95, levels | {"variant": cell.variant} | properties)


def _cells(request: QuantityRequest, variant: str | None) -> list[ClusterCell]:
    cells = request.reading.cached(_clusters)
    return [cell for cell in cells if variant in (None, cell.variant) and cell.id.matches(request.at)]


def _clusters(reading: CachedReading) -> list[ClusterCell]:
    return read_clusters(reading.run)


def _pairs(request: QuantityRequest) -> Iterator[tuple[ClusterCell, ClusterCell]]:
    """Yield each requested cell with its baseline."""
    for of in _cells(request, request.of):
        over = cell_of_variant(_cells(request, request.over), of, str(request.over))
        if over and over is not of and over.trials.keys() & of.trials.keys():
            yield of, over


def _speedups(request: QuantityRequest, statistic: Statistic, least: int = 1) -> list[Case]:
    found = ((of, pair_by_repetition(over, of, lambda trial: trial.points.times_ms)) for of, over in _pairs(request))
    return [
        _case(of, *paired_ratio(pairs, statistic))
        for of, pairs in found
        if min(sum(map(len, side)) for side in zip(*pairs, strict=True)) >= least
    ]


def _lives(
    request: QuantityRequest, figure: Callable[[JobHistory], float | None], of_all: Callable[..., float] = np.mean
) -> list[Case]:
    def measured(trial: ClusterTrial) -> list[float]:
        return [found for life in trial.timeline.jobs if (found := figure(life)) is not None]

    found = ((cell, list(filter(None, map(measured, cell.trials.values())))) for cell in _cells(request, request.of))
    return [_case(cell, *mean_of([float(of_all(own)) for own in each])) for cell, each in found if each]
