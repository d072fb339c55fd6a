# SPDX-License-Identifier: Apache-2.0
"""The results of the study of clusters: iteration times of all jobs together, and the jobs' histories, by scheduler.

The interleaving thesis, sections 4.5.2 to 4.5.6, pools all iterations of a trace, so long iterations of big models
weigh most. Results therefore also have multiples of the time that the same workers need in a dedicated cluster.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from analysis.expectations.outcomes import ALL_JOBS, JobSpeed
from analysis.expectations.results import CellFigure, CellResult, Result, Summary, common_fields
from analysis.quantities.clusters import Statistic, p99
from analysis.reading.cells import experiment_of
from analysis.reading.timelines import (
    ClusterCell,
    ClusterTrial,
    JobHistory,
    cell_of_variant,
    pair_by_repetition,
    read_clusters,
)
from analysis.statistics.intervals import (
    MIN_TAIL,
    Array,
    estimate,
    mean_of,
    paired_ratio,
    tail_estimate,
)
from roundabout.spec import StudyChoice
from roundabout.store import Run

IDEAL = "ideal"
"""Name of the scheduler that gives each job a cluster of its own."""


class TimeStatistics(Result):
    """Statistics of all iterations together; `p99` is None with fewer than a thousand iterations."""

    mean: CellFigure
    median: CellFigure
    p90: CellFigure
    p99: CellFigure | None
    max: float


class PooledIterations(CellResult):
    """All iterations of all jobs of a cell: in ms, and as multiples of the times in a dedicated cluster.

    Speed-ups are over `baseline`: for a scheduler with Cassini the same one without, else the study's baseline.
    `speedup_slowed` is the speed-up of the mean multiple, which does not depend on numbers of workers. `over_ideal` is
    the mean iteration time over that under the ideal scheduler.
    """

    repetitions: int
    count: int
    times_ms: TimeStatistics
    slowed: TimeStatistics
    baseline: str | None
    speedup_mean: CellFigure | None
    speedup_p99: CellFigure | None
    speedup_slowed: CellFigure | None
    over_ideal: CellFigure | None


class JobHistories(CellResult):
    """Statistics of jobs' histories in a cell, by the schedulers' timelines, in the cluster's seconds.

    `jobs` counts those of all repetitions. `waiting` of them were never placed and `unfinished` had not ended when the
    trace's time was over; figures of completion leave out both. `fairness_mean` and `fairness_worst` are the mean and
    the largest of Themis' rho. `moves` is the mean per job, and `score` the mean compatibility score of the placements
    that Cassini chose.
    """

    jobs: int
    waiting: int
    unfinished: int
    completion_mean_s: CellFigure | None
    completion_p99_s: CellFigure | None
    completion_max_s: float | None
    queueing_mean_s: CellFigure | None
    fairness_mean: CellFigure | None
    fairness_worst: CellFigure | None
    moves: CellFigure
    score: CellFigure | None


class ModelIterations(CellResult):
    """Statistics of one model's iterations in a cell; `marks` is the mean per iteration, None if unknown."""

    model: str
    count: int
    mean_ms: CellFigure
    slowed: CellFigure
    speedup: CellFigure | None
    marks: CellFigure | None


class Results(Summary):
    """The study's own results."""

    pooled: tuple[PooledIterations, ...]
    lives: tuple[JobHistories, ...]
    models: tuple[ModelIterations, ...]

    @property
    def speeds(self) -> tuple[JobSpeed, ...]:
        """Return the speed of all jobs of each cell together, by the mean over all their iterations."""
        return tuple(
            JobSpeed(cell.levels, ALL_JOBS, gain.value, gain.ci95, cell.baseline or "", is_bound=cell.name == IDEAL)
            for cell in self.pooled
            if (gain := cell.speedup_mean)
        )


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of a cluster shows."""
    cells, base = read_clusters(run), str(experiment_of(run).baseline.level)
    together = [(cell, baseline_of(cells, cell, base)) for cell in cells]
    return Results(
        **common_fields(run, choice),
        pooled=tuple(_pooled(cell, over, _ideal(cells, cell)) for cell, over in together),
        lives=tuple(_lives(cell) for cell in whole_traces(cells)),
        models=tuple(_model_iterations(cell, over, model) for cell, over in together for model in cell.models),
    )


def whole_traces(cells: Sequence[ClusterCell]) -> list[ClusterCell]:
    """Return the cells that played whole traces; in a window of a trace no job has its whole history."""
    return [cell for cell in cells if cell.first.window_start_s is None]


def groups(cells: Sequence[ClusterCell]) -> list[tuple[str, list[ClusterCell]]]:
    """Return groups of cells that differ only in the variant, each with its heading, in the experiment's order."""
    order = list(dict.fromkeys(cell.id.other_levels for cell in cells))
    ranked = sorted(cells, key=lambda cell: order.index(cell.id.other_levels))
    return [(name, list(some)) for name, some in groupby(ranked, lambda cell: cell.id.other_levels)]


def baseline_of(cells: Sequence[ClusterCell], cell: ClusterCell, base: str) -> ClusterCell | None:
    """Return the baseline of `cell`: the same scheduler without Cassini, else the variant `base`; None without it."""
    reported = cell.first.timeline
    plain = (
        each
        for each in cells
        if reported.cassini
        and each.id.without_factor("variant") == cell.id.without_factor("variant")
        and (each.first.timeline.scheduler, each.first.timeline.cassini) == (reported.scheduler, False)
    )
    found = next(plain, None) or cell_of_variant(cells, cell, base)
    return found if found is not cell else None


def _ideal(cells: Sequence[ClusterCell], cell: ClusterCell) -> ClusterCell | None:
    alike = (each for each in cells if each.id.without_factor("variant") == cell.id.without_factor("variant"))
    return next((each for each in alike if each.first.timeline.scheduler == IDEAL and each is not cell), None)


def _pooled(cell: ClusterCell, over: ClusterCell | None, ideal: ClusterCell | None) -> PooledIterations:
    return PooledIterations(
        levels=dict(cell.id.levels),
        repetitions=len(cell.trials),
        count=sum(map(len, cell.times_ms)),
        times_ms=_spread(cell.times_ms),
        slowed=_spread(cell.slowdowns),
        baseline=over and over.variant,
        speedup_mean=_ratio(over, cell, _times_ms, np.mean),
        speedup_p99=_ratio(over, cell, _times_ms, p99, MIN_TAIL),
        speedup_slowed=_ratio(over, cell, _slowed, np.mean),
        over_ideal=_ratio(cell, ideal, _times_ms, np.mean),
    )


def _spread(repetitions: Sequence[Array]) -> TimeStatistics:
    def figure(statistic: Statistic) -> CellFigure:
        return CellFigure.of(estimate(repetitions, statistic, at_least=0))

    beyond = tail_estimate(repetitions)
    return TimeStatistics(
        mean=figure(np.mean),
        median=figure(np.median),
        p90=figure(lambda times: float(np.quantile(times, 0.9))),
        p99=CellFigure.of(beyond) if beyond else None,
        max=max(float(times.max()) for times in repetitions),
    )


def _times_ms(trial: ClusterTrial) -> Array:
    return trial.points.times_ms


def _slowed(trial: ClusterTrial) -> Array:
    return trial.points.slowdowns


def _ratio(
    over: ClusterCell | None,
    of: ClusterCell | None,
    what: Callable[[ClusterTrial], Array],
    statistic: Statistic,
    least: int = 1,
) -> CellFigure | None:
    """Return a statistic of one cell's iterations over that of another's, by the repetitions that both have."""
    pairs = pair_by_repetition(over, of, what) if over and of else []
    enough = pairs and min(sum(map(len, side)) for side in zip(*pairs, strict=True)) >= least
    return CellFigure.of(paired_ratio(pairs, statistic)) if enough else None


def _model_iterations(cell: ClusterCell, over: ClusterCell | None, model: str) -> ModelIterations:
    def own_ms(trial: ClusterTrial) -> Array:
        return trial.points.of_model(model).times_ms

    own = [each for trial in cell.trials.values() if len((each := trial.points.of_model(model)).times_ms)]
    times, slowed = [each.times_ms for each in own], [each.slowdowns for each in own]
    pairs = [
        (one, other)
        for one, other in (pair_by_repetition(over, cell, own_ms) if over else [])
        if len(one) and len(other)
    ]
    marks = cell.marks(model)
    return ModelIterations(
        levels=dict(cell.id.levels),
        model=model,
        count=sum(map(len, times)),
        mean_ms=CellFigure.of(estimate(times, np.mean)),
        slowed=CellFigure.of(estimate(slowed, np.mean)),
        speedup=CellFigure.of(paired_ratio(pairs, np.mean)) if pairs else None,
        marks=CellFigure.of(estimate(marks, np.mean, at_least=0)) if marks else None,
    )


def _lives(cell: ClusterCell) -> JobHistories:
    timelines = [trial.timeline for trial in cell.trials.values()]
    jobs = [life for timeline in timelines for life in timeline.jobs]

    def known(figure: Callable[[JobHistory], float | None]) -> list[Array]:
        each = ([found for life in own.jobs if (found := figure(life)) is not None] for own in timelines)
        return [np.array(own) for own in each if own]

    def mean(repetitions: list[Array]) -> CellFigure | None:
        return CellFigure.of(estimate(repetitions, np.mean, at_least=0)) if repetitions else None

    completion, fairness = known(lambda life: life.completion_s), known(lambda life: life.fairness)
    chosen = ([max(found.known_scores) for found in each.decisions if found.known_scores] for each in timelines)
    scores = [np.array(own) for own in chosen if own]
    beyond = tail_estimate(completion) if completion else None
    return JobHistories(
        levels=dict(cell.id.levels),
        jobs=len(jobs),
        waiting=sum(life.started_s is None for life in jobs),
        unfinished=sum(life.started_s is not None and life.ended_s is None for life in jobs),
        completion_mean_s=mean(completion),
        completion_p99_s=CellFigure.of(beyond) if beyond else None,
        completion_max_s=max((float(each.max()) for each in completion), default=None),
        queueing_mean_s=mean(known(lambda life: life.queueing_s)),
        fairness_mean=mean(fairness),
        fairness_worst=CellFigure.of(mean_of([float(each.max()) for each in fairness])) if fairness else None,
        moves=CellFigure.of(estimate(known(lambda life: float(life.moves)), np.mean, at_least=0)),
        score=mean(scores),
    )
