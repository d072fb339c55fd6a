# SPDX-License-Identifier: Apache-2.0
"""The request for a quantity of a run, and its answer as cases or curves."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from analysis.reading.cells import CellId, CellTrials, cells_of, disturbed_cells, experiment_of
from analysis.reading.cross_traffic.load_sweeps import JobSweep, job_sweeps
from analysis.reading.fidelity import is_repeatable
from analysis.reading.speedups import baseline_of
from analysis.statistics.intervals import Array, Interval, Measured
from roundabout.spec import Experiment
from roundabout.store import Run

T = TypeVar("T")
Points = tuple[tuple[float, float], ...]


class CachedReading:
    """A run as quantities read it, with a cache of common results."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._made: dict[Hashable, Any] = {}

    def cached(self, make: Callable[["CachedReading"], T]) -> T:
        """Return `make(self)`, which is computed at the first call only."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("T", self._made[make])

    @property
    def experiment(self) -> Experiment:
        """Return the experiment as it was resolved when the run began."""
        return self.cached(_experiment)

    @property
    def testbed(self) -> str:
        """Return the kind of testbed that the run was on."""
        return str(self.run.manifest["testbed"].get("kind", ""))

    @property
    def is_exact(self) -> bool:
        """Return True if the run was computed without random parts, so that a repetition would give equal figures."""
        drawn = any(cell.spec.has_random_parts for cell in self.experiment.cells)
        return is_repeatable(self.run) and not drawn

    @property
    def disturbed(self) -> Mapping[CellId, float]:
        """Return the cells whose figures come from disturbed trials, with the estimated effect as a share."""
        return self.cached(_disturbed)

    @property
    def cells(self) -> Sequence[CellTrials]:
        """Return the measurements of the trials that count, by variant and levels."""
        return self.cached(_cells)

    @property
    def sweeps(self) -> Sequence[JobSweep]:
        """Return a load sweep for each job and kind of cross traffic; empty if the run does not vary the load."""
        return self.cached(_sweeps)


def _experiment(reading: CachedReading) -> Experiment:
    return experiment_of(reading.run)


def _disturbed(reading: CachedReading) -> Mapping[CellId, float]:
    return disturbed_cells(reading.run)


def _cells(reading: CachedReading) -> Sequence[CellTrials]:
    return cells_of(reading.run)


def _sweeps(reading: CachedReading) -> Sequence[JobSweep]:
    return job_sweeps(reading.run)


@dataclass(frozen=True)
class Case:
    """A figure, in the quantity's unit, with its 95 % interval if there is one.

    `properties` describe the case (variant, job, model, levels). The expectation's fields `only`, `by` and `row` select
    cases by them. `is_drawn` marks a mean over draws, whose interval is their scatter even if each draw is exact.
    """

    name: str
    value: float
    ci95: Interval | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    is_drawn: bool = False

    @property
    def exactly(self) -> "Case":
        """Return the case with an interval of width 0, for an exact figure; a mean over draws keeps its own."""
        return self if self.is_drawn else replace(self, ci95=(self.value, self.value))


@dataclass(frozen=True)
class Curve:
    """A measured curve of points (x, y) with rising x; `ends` are the lower and upper ends of y's 95 % intervals."""

    name: str
    points: Points
    properties: Mapping[str, str] = field(default_factory=dict)
    ends: tuple[Points, Points] | None = None

    @classmethod
    def from_figures(
        cls, name: str, measured: Sequence[tuple[float, Measured]], properties: Mapping[str, str] | None = None
    ) -> "Curve":
        """Return the curve of (x, figure) pairs; it has no intervals if any figure lacks one."""
        points = tuple((x, figure) for x, (figure, _) in measured)
        intervals = [(x, ends) for x, (_, ends) in measured if ends is not None]
        low, high = (tuple((x, ends[side]) for x, ends in intervals) for side in (0, 1))
        return cls(name, points, properties or {}, (low, high) if len(intervals) == len(points) else None)

    @property
    def exactly(self) -> "Curve":
        """Return the curve with intervals of width 0, for exact points."""
        return replace(self, ends=(self.points, self.points))


@dataclass(frozen=True)
class QuantityRequest:
    """The part of a run for which a quantity is requested: variant `of`, `job` and levels `at`; None stands for all."""

    reading: CachedReading
    of: str | None = None
    over: str | None = None
    job: str | None = None
    at: Mapping[str, Any] | None = None

    def cells_of(self, variant: str | None) -> list[CellTrials]:
        """Return the measured cells of a variant, or of all if None, at the requested levels."""
        return [cell for cell in self.reading.cells if variant in (None, cell.variant) and cell.id.matches(self.at)]

    @property
    def cells(self) -> list[CellTrials]:
        """Return the measured cells of the requested variant and levels."""
        return self.cells_of(self.of)

    def jobs(self, cell: CellTrials) -> list[str]:
        """Return the requested jobs that were measured in a cell."""
        return [job for job in cell.spec.jobs if job in cell.times and self.job in (None, job)]

    def pairs_with_baseline(self) -> Iterator[tuple[CellTrials, CellTrials, str]]:
        """Yield each cell, the cell of variant `over` at the same other levels, and each job that both have."""
        for cell in self.cells:
            base = baseline_of(self.cells_of(self.over), cell, str(self.over))
            if base and base is not cell:
                yield from ((cell, base, job) for job in self.jobs(cell) if job in base.times)

    def name_of(self, cell: CellTrials) -> str:
        """Return a name for the cell made of the levels in which the requested cells differ."""
        others = [each.levels for each in self.cells if each is not cell]
        own = {name: level for name, level in cell.levels.items() if any(each[name] != level for each in others)}
        return (CellId(own).name if "variant" in own else CellId(own).other_levels) or cell.name

    @property
    def sweeps(self) -> list[JobSweep]:
        """Return the load sweeps of the requested variant, job and levels."""
        return [
            each
            for each in self.reading.sweeps
            if self.of in (None, each.loaded.variant)
            and self.job in (None, each.loaded.job_name)
            and each.loaded.setting.matches(self.at)
        ]

    def each_job(self, statistic: Callable[[Array], float]) -> list[Case]:
        """Return a case for each job and cell, with an interval.

        `statistic` is applied to the iteration times of all repetitions together, ms.
        """
        return [self.case(cell, job, *cell.estimate(job, statistic)) for cell in self.cells for job in self.jobs(cell)]

    def each_repetition(
        self, made: Mapping[tuple[str, str], T], figure: Callable[[Sequence[T]], Measured]
    ) -> list[Case]:
        """Return a case for each requested cell and job that has values in `made`, which holds them by trial and job.

        `figure` turns the values of all repetitions into a figure with its interval.
        """
        return [
            self.case(cell, job, *figure(found))
            for cell in self.cells
            for job in self.jobs(cell)
            if (found := self.repetitions(made, cell, job))
        ]

    @staticmethod
    def repetitions(made: Mapping[tuple[str, str], T], cell: CellTrials, job: str) -> list[T]:
        """Return a job's values in `made`, one for each repetition of the cell that has a value."""
        return [made[trial, job] for trial in cell.trials if (trial, job) in made]

    def case(self, cell: CellTrials, job: str, value: float, ci95: Interval | None = None) -> Case:
        """Return the case of one job of a cell; its name distinguishes it from the other requested cells and jobs."""
        profile = cell.spec.jobs[job].profile
        name = job if len(self.cells) == 1 else f"{self.name_of(cell)}, {job}"
        return Case(name, value, ci95, cell.properties | {"job": job, "profile": profile.name, "model": profile.model})
