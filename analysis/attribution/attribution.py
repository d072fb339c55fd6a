# SPDX-License-Identifier: Apache-2.0
"""The attribution of a run's delays: for each job, how much time each cause takes in an iteration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Event
from typing import Any, Literal

from analysis.attribution.counterfactuals import CAUSES, Cause
from analysis.attribution.decomposition import AttributionError, MeasuredTrial, Models, Source, decompose
from analysis.attribution.measured_trials import cells_without_cluster, measured_trials
from analysis.calibration.parallel_plays import play_all
from analysis.expectations.results import CellFigure, Result
from analysis.reading.cells import CellTrials, cells_of
from analysis.statistics.intervals import mean_of
from roundabout.spec.base import Level
from roundabout.store import Run

SCHEMA: Literal[1] = 1
"""Version of the record."""

MIN_SHARE = 0.01
"""Share of an iteration alone below which a part is not named: iterations of one job vary by as much."""

OpenModels = Callable[[str, MeasuredTrial, Callable[[], bool]], Models]
"""Returns the models that play a trial, by the trial's key, until the function given says that they shall stop."""

Parts = Mapping[Source, float]


class DelayPart(Result):
    """A part of a job's delay, ms an iteration. It is negative for what makes iterations shorter."""

    cause: Cause
    name: str = ""
    link: str | None = None
    beside: str = ""
    ms: CellFigure


class JobDelay(Result):
    """The delay of a job in the trials of one cell: its mean iteration time less its profile's, and the parts."""

    cell: str
    levels: dict[str, Level]
    job: str
    repetitions: int
    disturbed: bool
    iteration_ms: float
    alone_ms: float
    delay_ms: CellFigure
    parts: tuple[DelayPart, ...]

    @property
    def named(self) -> tuple[DelayPart, ...]:
        """Return the parts that are named as causes, the largest first.

        There is none if the delay is not notable itself, or if the model does not fit.
        """
        if not self.is_notable(self.delay_ms) or self.delay_ms.value < 0 or not self.has_fitting_model:
            return ()
        found = (part for part in self.parts[:-1] if self.is_notable(part.ms) and part.ms.value > 0)
        return tuple(sorted(found, key=lambda part: -part.ms.value))

    @property
    def savings(self) -> tuple[DelayPart, ...]:
        """Return the notable parts that make iterations shorter, the largest first; none if the model does not fit."""
        if not self.has_fitting_model:
            return ()
        found = (part for part in self.parts[:-1] if self.is_notable(part.ms) and part.ms.value < 0)
        return tuple(sorted(found, key=lambda part: part.ms.value))

    @property
    def unexplained(self) -> DelayPart:
        """Return the part that no cause explains."""
        return self.parts[-1]

    @property
    def computed_ms(self) -> float:
        """Return the delay that the model computes, ms."""
        return self.delay_ms.value - self.unexplained.ms.value

    @property
    def has_fitting_model(self) -> bool:
        """Return True if the model leaves no more unexplained than the delay itself, or less than is notable."""
        rest_ms = abs(self.unexplained.ms.value)
        return rest_ms <= max(abs(self.delay_ms.value), MIN_SHARE * self.alone_ms)

    def is_notable(self, figure: CellFigure) -> bool:
        """Return True if a time is at least MIN_SHARE of an iteration alone, and its interval excludes 0."""
        excludes_0 = figure.ci95 is None or figure.ci95[0] > 0 or figure.ci95[1] < 0
        return abs(figure.value) >= MIN_SHARE * self.alone_ms and excludes_0


class Attribution(Result):
    """The delays of all jobs of a run. `model` is the testbed whose model stands for the run's.

    For a cluster's records, `notes` are sentences on what these do not show.
    """

    schema_version: Literal[1] = SCHEMA
    experiment: str
    run: str
    testbed: str
    model: str
    jobs: tuple[JobDelay, ...]
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the attribution as JSON-compatible values."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class ChosenTrials:
    """The trials of a run that are explained, by their keys, and their cells."""

    cells: Sequence[CellTrials]
    trials: Mapping[str, MeasuredTrial]


def choose_trials(run: Run, levels: Sequence[str] = (), repetitions: int | None = None) -> ChosenTrials:
    """Return the trials of a run that count, without those of a cluster's trace.

    With `levels`, only cells that have one of these levels, such as a variant. With `repetitions`, only as many of each
    cell. Raises AttributionError if there are none, and StoreError if a table cannot be read.
    """
    cells = list(cells_without_cluster(cells_of(run), levels))
    if not cells:
        raise _nothing_to_explain(run, levels)
    trials = measured_trials(run, cells)
    return ChosenTrials(cells, {key: each for cell in cells for key, each in _first(cell, trials, repetitions).items()})


def decompose_all(
    trials: Sequence[tuple[str, MeasuredTrial]],
    open_models: OpenModels,
    processors: int | None,
    progress: Callable[[float], None],
) -> list[dict[str, dict[Source, float]]]:
    """Return the parts of each job's delay in each trial, given with its key, ms.

    `open_models`, `processors` and `progress` are those of `attribute_delays`.
    """
    steps = sum(1 + len(trial.mean_ms) for _, trial in trials)
    done = count(1)

    def explain(key: str, trial: MeasuredTrial, stopped: Event) -> dict[str, dict[Source, float]]:
        models = open_models(key, trial, stopped.is_set)
        return decompose(trial, models, lambda: progress(next(done) / steps))

    return play_all([partial(explain, *each) for each in trials], processors, lambda _, __: None)


def attribute_delays(  # noqa: PLR0913, PLR0917 - what is explained, by what, and how it is watched
    run: Run,
    chosen: ChosenTrials,
    open_models: OpenModels,
    model: str,
    processors: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Attribution:
    """Return what delays the jobs of a run, by playing its trials again without one cause after the other.

    Args:
        run: the run.
        chosen: the trials that are explained.
        open_models: opens the models that play a trial.
        model: the name of the testbed whose model stands for the run's testbed.
        processors: how many trials are played at once; as many as there are processors if None.
        progress: receives the finished share, from 0 to 1.

    Raises:
        RoundaboutError: a model cannot play a trial.
    """
    found = decompose_all(list(chosen.trials.items()), open_models, processors, progress)
    parts = dict(zip(chosen.trials, found, strict=True))
    jobs = [each for cell in chosen.cells for each in _job_delays(cell, chosen.trials, parts)]
    return Attribution(
        experiment=run.experiment,
        run=run.id,
        testbed=run.manifest["testbed"]["kind"],
        model=model,
        jobs=tuple(jobs),
    )


def _nothing_to_explain(run: Run, levels: Sequence[str]) -> AttributionError:
    cells = cells_of(run)
    known = sorted({str(level) for cell in cells for level in cell.levels.values()})
    if levels and cells:
        return AttributionError(f"--only: found {', '.join(levels)}, allowed are levels of the run: {', '.join(known)}")
    return AttributionError(
        f"{run.path}: found no valid trial of an experiment's own jobs, expected one at least",
        "a cluster's trace is not explained; `roundabout status` lists the trials of a run",
    )


def _first(cell: CellTrials, trials: Mapping[str, MeasuredTrial], count: int | None) -> dict[str, MeasuredTrial]:
    """Return the trials of a cell's first `count` repetitions, of which each may have a trial for each job alone."""
    seen: dict[tuple[str, ...], int] = {}
    found = {}
    for key in cell.trials:
        jobs = tuple(trials[key].spec.jobs)
        seen[jobs] = seen.get(jobs, 0) + 1
        if count is None or seen[jobs] <= count:
            found[key] = trials[key]
    return found


def _job_delays(
    cell: CellTrials, trials: Mapping[str, MeasuredTrial], parts: Mapping[str, Mapping[str, Parts]]
) -> list[JobDelay]:
    found = []
    for job in cell.jobs:
        keys = [key for key in cell.trials if job in parts.get(key, {})]
        if not keys:
            continue
        means = [trials[key].mean_ms[job] for key in keys]
        alone = trials[keys[0]].spec.jobs[job].profile.alone_ms
        found.append(
            JobDelay(
                cell=cell.id.name,
                levels=dict(cell.levels),
                job=job,
                repetitions=len(keys),
                disturbed=cell.disturbance is not None,
                iteration_ms=mean_of(means)[0],
                alone_ms=alone,
                delay_ms=CellFigure.of(mean_of([mean - alone for mean in means])),
                parts=delay_parts([parts[key][job] for key in keys]),
            )
        )
    return found


def delay_parts(repetitions: Sequence[Parts]) -> tuple[DelayPart, ...]:
    """Return the mean of each part over repetitions, in the order of causes."""
    sources = dict.fromkeys(source for each in repetitions for source in each)
    ordered = sorted(sources, key=lambda source: CAUSES.index(source.cause))
    return tuple(
        DelayPart(
            cause=source.cause,
            name=source.name,
            link=source.link,
            beside=source.beside,
            ms=CellFigure.of(mean_of([each.get(source, 0.0) for each in repetitions])),
        )
        for source in ordered
    )
