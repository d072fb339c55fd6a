# SPDX-License-Identifier: Apache-2.0
"""The results of the study of clusters: iteration times of all jobs together by scheduler, and the jobs' histories.

The interleaving thesis, sections 4.5.2 to 4.5.6, pools all iterations of a trace; long ones of big models weigh most
there. So beside milliseconds there are multiples of what the same workers need in a dedicated cluster.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from analysis.expectations.results import Result, Summary, common
from analysis.quantities.clusters import Statistic, p99
from analysis.reading.cells import CellId, experiment_of
from analysis.reading.timelines import ClusterCell, ClusterTrial, Life, beside, clusters_of, paired
from analysis.statistics.intervals import (
    LEAST_TAIL,
    Array,
    Interval,
    Measured,
    estimate,
    mean_of,
    paired_ratio,
    tail,
)
from roundabout.spec import StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run

IDEAL = "ideal"
"""The scheduler that gives each job a cluster of its own."""


class Figure(Result):
    """A figure with its 95 % interval, which fewer than four repetitions do not have."""

    value: float
    ci95: Interval | None

    @classmethod
    def of(cls, measured: Measured) -> "Figure":
        """Return a figure and its interval."""
        return cls(value=measured[0], ci95=measured[1])


class Row(Result):
    """The results of one cell."""

    levels: dict[str, Level]

    @property
    def name(self) -> str:
        """Return the name in tables and figures within a group: the variant."""
        return CellId(self.levels).variant

    @property
    def group(self) -> str:
        """Return the other levels, as headings have them."""
        return CellId(self.levels).others


class Spread(Result):
    """Statistics of all iterations together. With fewer than a thousand `p99` is None."""

    mean: Figure
    median: Figure
    p90: Figure
    p99: Figure | None
    max: float


class Pooled(Row):
    """All iterations of all jobs: in ms, and as multiples of a dedicated cluster's.

    Speed-ups are over `baseline`: the same scheduler without Cassini, or of those without it the study's baseline;
    `speedup_slowed` is that of the mean multiple, to which numbers of workers make no difference. `over_ideal` is the
    mean iteration time over that of jobs which each have a cluster of their own.
    """

    repetitions: int
    count: int
    times_ms: Spread
    slowed: Spread
    baseline: str | None
    speedup_mean: Figure | None
    speedup_p99: Figure | None
    speedup_slowed: Figure | None
    over_ideal: Figure | None


class Lives(Row):
    """The histories of jobs, by their scheduler's timeline; seconds of the cluster.

    Of all repetitions' `jobs`, `waiting` were never placed and `unfinished` not done when the trace's time was up: both
    are in no figure of completion. `fairness` is Themis' rho, and `worst` that of the job with the largest. `moves` are
    a job's, and `score` the mean compatibility score of placements that Cassini chose.
    """

    jobs: int
    waiting: int
    unfinished: int
    completion_mean_s: Figure | None
    completion_p99_s: Figure | None
    completion_max_s: float | None
    queueing_mean_s: Figure | None
    fairness_mean: Figure | None
    fairness_worst: Figure | None
    moves: Figure
    score: Figure | None


class OfModel(Row):
    """One model's iterations in one cell; `marks` are of an iteration, if they are known."""

    model: str
    count: int
    mean_ms: Figure
    slowed: Figure
    speedup: Figure | None
    marks: Figure | None


class Results(Summary):
    """The study's own results."""

    pooled: tuple[Pooled, ...]
    lives: tuple[Lives, ...]
    models: tuple[OfModel, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of a cluster shows."""
    cells, base = clusters_of(run), str(experiment_of(run).baseline.level)
    together = [(cell, baseline_of(cells, cell, base)) for cell in cells]
    return Results(
        **common(run, choice),
        pooled=tuple(_pooled(cell, over, _ideal(cells, cell)) for cell, over in together),
        lives=tuple(_lives(cell) for cell in whole(cells)),
        models=tuple(_of_model(cell, over, model) for cell, over in together for model in cell.models),
    )


def whole(cells: Sequence[ClusterCell]) -> list[ClusterCell]:
    """Return the cells of whole traces: in a window of one no job has its whole history."""
    return [cell for cell in cells if cell.first.sliced_s is None]


def groups(cells: Sequence[ClusterCell]) -> list[tuple[str, list[ClusterCell]]]:
    """Group cells of the same other levels, by their headings, in the experiment's order."""
    order = list(dict.fromkeys(cell.id.others for cell in cells))
    ranked = sorted(cells, key=lambda cell: order.index(cell.id.others))
    return [(name, list(some)) for name, some in groupby(ranked, lambda cell: cell.id.others)]


def baseline_of(cells: Sequence[ClusterCell], cell: ClusterCell, base: str) -> ClusterCell | None:
    """Return its baseline: with Cassini the same scheduler without it, else the study's baseline."""
    told = cell.first.timeline
    plain = (
        each
        for each in cells
        if told.cassini
        and each.id.without("variant") == cell.id.without("variant")
        and (each.first.timeline.scheduler, each.first.timeline.cassini) == (told.scheduler, False)
    )
    found = next(plain, None) or beside(cells, cell, base)
    return found if found is not cell else None


def _ideal(cells: Sequence[ClusterCell], cell: ClusterCell) -> ClusterCell | None:
    alike = (each for each in cells if each.id.without("variant") == cell.id.without("variant"))
    return next((each for each in alike if each.first.timeline.scheduler == IDEAL and each is not cell), None)


def _pooled(cell: ClusterCell, over: ClusterCell | None, ideal: ClusterCell | None) -> Pooled:
    return Pooled(
        levels=dict(cell.id.levels),
        repetitions=len(cell.trials),
        count=sum(map(len, cell.times_ms)),
        times_ms=_spread(cell.times_ms),
        slowed=_spread(cell.slowed),
        baseline=over and over.variant,
        speedup_mean=_ratio(over, cell, _times_ms, np.mean),
        speedup_p99=_ratio(over, cell, _times_ms, p99, LEAST_TAIL),
        speedup_slowed=_ratio(over, cell, _slowed, np.mean),
        over_ideal=_ratio(cell, ideal, _times_ms, np.mean),
    )


def _spread(repetitions: Sequence[Array]) -> Spread:
    def figure(statistic: Statistic) -> Figure:
        return Figure.of(estimate(repetitions, statistic, at_least=0))

    beyond = tail(repetitions)
    return Spread(
        mean=figure(np.mean),
        median=figure(np.median),
        p90=figure(lambda times: float(np.quantile(times, 0.9))),
        p99=Figure.of(beyond) if beyond else None,
        max=max(float(times.max()) for times in repetitions),
    )


def _times_ms(trial: ClusterTrial) -> Array:
    return trial.points.times_ms


def _slowed(trial: ClusterTrial) -> Array:
    return trial.points.slowed


def _ratio(
    over: ClusterCell | None,
    of: ClusterCell | None,
    what: Callable[[ClusterTrial], Array],
    statistic: Statistic,
    least: int = 1,
) -> Figure | None:
    """Return a statistic of one cell's iterations over that of another's, by the repetitions that both have."""
    pairs = paired(over, of, what) if over and of else []
    enough = pairs and min(sum(map(len, side)) for side in zip(*pairs, strict=True)) >= least
    return Figure.of(paired_ratio(pairs, statistic)) if enough else None


def _of_model(cell: ClusterCell, over: ClusterCell | None, model: str) -> OfModel:
    def own_ms(trial: ClusterTrial) -> Array:
        return trial.points.of(model).times_ms

    own = [each for trial in cell.trials.values() if len((each := trial.points.of(model)).times_ms)]
    times, slowed = [each.times_ms for each in own], [each.slowed for each in own]
    pairs = [(one, other) for one, other in (paired(over, cell, own_ms) if over else []) if len(one) and len(other)]
    marks = cell.marks(model)
    return OfModel(
        levels=dict(cell.id.levels),
        model=model,
        count=sum(map(len, times)),
        mean_ms=Figure.of(estimate(times, np.mean)),
        slowed=Figure.of(estimate(slowed, np.mean)),
        speedup=Figure.of(paired_ratio(pairs, np.mean)) if pairs else None,
        marks=Figure.of(estimate(marks, np.mean, at_least=0)) if marks else None,
    )


def _lives(cell: ClusterCell) -> Lives:
    timelines = [trial.timeline for trial in cell.trials.values()]
    jobs = [life for timeline in timelines for life in timeline.jobs]

    def known(figure: Callable[[Life], float | None]) -> list[Array]:
        each = ([found for life in own.jobs if (found := figure(life)) is not None] for own in timelines)
        return [np.array(own) for own in each if own]

    def mean(repetitions: list[Array]) -> Figure | None:
        return Figure.of(estimate(repetitions, np.mean, at_least=0)) if repetitions else None

    completion, fairness = known(lambda life: life.completion_s), known(lambda life: life.fairness)
    chosen = ([max(found.ranked) for found in each.decisions if found.ranked] for each in timelines)
    scores = [np.array(own) for own in chosen if own]
    beyond = tail(completion) if completion else None
    return Lives(
        levels=dict(cell.id.levels),
        jobs=len(jobs),
        waiting=sum(life.started_s is None for life in jobs),
        unfinished=sum(life.started_s is not None and life.ended_s is None for life in jobs),
        completion_mean_s=mean(completion),
        completion_p99_s=Figure.of(beyond) if beyond else None,
        completion_max_s=max((float(each.max()) for each in completion), default=None),
        queueing_mean_s=mean(known(lambda life: life.queueing_s)),
        fairness_mean=mean(fairness),
        fairness_worst=Figure.of(mean_of([float(each.max()) for each in fairness])) if fairness else None,
        moves=Figure.of(estimate(known(lambda life: float(life.moves)), np.mean, at_least=0)),
        score=mean(scores),
    )
