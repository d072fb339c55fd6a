# SPDX-License-Identifier: Apache-2.0
"""The typed results of studies: computed once, stored as summary.json (docs/reference/summary.schema.json), and shown.

All iterations of all repetitions that count are included: valid ones, or disturbed ones where none is valid.
Statistics of a part of a run have their own field, such as `last_half`.
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from analysis.expectations.outcomes import ALONE, LOAD, JobSpeed
from analysis.expectations.repetition_needs import with_needs
from analysis.expectations.verdicts import Verdict, judge
from analysis.quantities import CachedReading
from analysis.reading.cells import CellId, CellTrials, cells_of, experiment_of
from analysis.reading.congestion.marks import JobMarks, marks_of_cells
from analysis.reading.disturbance import mark_name, widen
from analysis.reading.fidelity import Fidelity, fidelity_of
from analysis.reading.flow_limits import limits_of_cells
from analysis.reading.speedups import baseline_of, typical_speedup
from analysis.statistics.intervals import Array, Interval, Measured, estimate, find_modes, ratio, tail_estimate
from roundabout.models.fluid import Limits
from roundabout.spec import StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run
from roundabout.store.trial_states import DISTURBANCE, STATES, counted_trials, state_of_record

SCHEMA: Literal[4] = 4
"""Version of summary.json. Since version 3 a 99th percentile needs a thousand iterations, and intervals decide
verdicts.
"""

LimitName = Literal["alone", "fair", "interleaved"]

MIN_POSSIBLE = 0.01  # share of an iteration; a smaller possible gain is within iterations' variation


def finite_or_none(value: float | None) -> float | None:
    """Return the value, or None if it is infinite, because JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


Finite = Annotated[float | None, BeforeValidator(finite_or_none)]
"""A figure that is stored as None if it is infinite."""


class Result(BaseModel):
    """A part of the results. Unknown fields of a stored part are ignored, because they are derived.

    A field that is a `Result` may be given as any object with its attributes.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", serialize_by_alias=True, from_attributes=True)


class CellFigure(Result):
    """A figure with its 95 % interval, which is None with fewer than four repetitions."""

    value: float
    ci95: Interval | None

    @classmethod
    def of(cls, measured: Measured) -> "CellFigure":
        """Return the stored form of a figure with its interval."""
        return cls(value=measured[0], ci95=measured[1])


class CellResult(Result):
    """The results of one cell that is compared with those of the same levels besides the variant."""

    levels: dict[str, Level]

    @property
    def name(self) -> str:
        """Return the name in tables and figures within a group: the variant."""
        return CellId(self.levels).variant

    @property
    def group(self) -> str:
        """Return the levels besides the variant, as text for headings."""
        return CellId(self.levels).other_levels


class Statistics(Result):
    """Statistics of iteration times, ms. `count` is their number; with fewer than a thousand `p99_ms` is None.

    `modes_ms` are the means of two modes; None for iterations with one.
    """

    count: int
    median_ms: float
    mean_ms: float
    p99_ms: float | None
    max_ms: float
    median_ci95_ms: Interval | None
    mean_ci95_ms: Interval | None
    p99_ci95_ms: Interval | None
    modes_ms: tuple[float, float] | None = None

    @property
    def typical_ms(self) -> float:
        """Return the median, or the mean if iterations have two modes, because a median is one of them by chance."""
        return self.median_ms if self.modes_ms is None else self.mean_ms

    @property
    def typical_ci95_ms(self) -> Interval | None:
        """Return the interval of `typical_ms`."""
        return self.median_ci95_ms if self.modes_ms is None else self.mean_ci95_ms


class LastHalf(Statistics):
    """Statistics of the second half of each repetition's iterations.

    `gain_of_possible` is the gain over the baseline as a share of the gain that interleaving could bring.
    """

    gain_of_possible: float | None


class Fluid(Result):
    """The flow-level model's iteration times, ms.

    None if cross traffic leaves the job no capacity, or if the job or one beside it does not play its profile.
    """

    alone_ms: Finite
    fair_ms: Finite
    interleaved_ms: Finite


class Marks(Result):
    """ECN marks per iteration; `count` and `p99` as in `Statistics`."""

    count: int
    median: float
    mean: float
    p99: float | None
    max: float
    median_ci95: Interval | None
    mean_ci95: Interval | None
    p99_ci95: Interval | None
    modes: tuple[float, float] | None = None
    bound: int
    unattributed_share: float | None
    counted_by: str


class JobCell(Statistics):
    """The results of one job in one cell. `limit` names the flow-level limit to compare with.

    Figures are computed from `repetitions` trials; the cell's `invalid` trials are left out, and so are its disturbed
    trials if one is valid. Otherwise `disturbance` is their largest estimated effect, as a share; None without any.
    """

    variant: str
    levels: dict[str, Level]
    job: str
    repetitions: int
    invalid: int = 0
    iterations: int
    baseline: str | None
    speedup: float | None
    speedup_ci95: Interval | None
    fluid: Fluid
    limit: LimitName
    last_half: LastHalf
    marks_per_iteration: Marks | None = None
    disturbance: float | None = None

    @property
    def id(self) -> CellId:
        """Return the id of the cell."""
        return CellId(self.levels)

    @property
    def name(self) -> str:
        """Return the cell's name in tables, with a mark if its trials were disturbed."""
        return mark_name(CellId(self.levels).name, self.disturbance)

    @property
    def name_in_group(self) -> str:
        """Return the name beside the cells that differ only in the variant, with a mark for disturbed trials."""
        return mark_name(self.id.name_in_group, self.disturbance)

    @property
    def speed(self) -> JobSpeed | None:
        """Return the job's speed-up over the baseline; None in the baseline, and without one."""
        if self.speedup is None:
            return None
        is_bound = self.limit == "alone"
        return JobSpeed(self.levels, self.job, self.speedup, self.speedup_ci95, self.baseline or "", is_bound)

    @property
    def speed_beside_alone(self) -> JobSpeed | None:
        """Return the job's speed as a share of that alone in the flow-level model; None if that is unknown."""
        if self.fluid.alone_ms is None or self.limit == "alone":
            return None
        return self._speed_beside((self.fluid.alone_ms, (self.fluid.alone_ms, self.fluid.alone_ms)), ALONE)

    def speed_beside_load(self, least: "JobCell") -> JobSpeed:
        """Return the job's speed as a share of that in `least`, the same cell at the least load."""
        found = least.typical_ms, least.typical_ci95_ms
        return self._speed_beside(found, str(least.levels[LOAD]))

    def _speed_beside(self, baseline_ms: Measured, name: str) -> JobSpeed:
        speed, interval = ratio(baseline_ms, (self.typical_ms, self.typical_ci95_ms))
        return JobSpeed(self.levels, self.job, speed, interval, name)

    @property
    def limit_ms(self) -> float | None:
        """Return the job's flow-level limit, ms; None if it has none, or if it is unknown."""
        found: float | None = getattr(self.fluid, f"{self.limit}_ms")
        return found


class Testbed(Result):
    """The testbed of the measurements, and how real they are."""

    kind: str
    emulated: bool
    scale: float
    fidelity: Fidelity


class InvalidTrial(Result):
    """A trial that counts in no figure, and the reason. `name` describes its cell, job and repetition."""

    key: str
    name: str = ""
    reason: str


class DisturbedTrial(InvalidTrial):
    """A trial whose figures a lack of CPU time biased, and the estimated effect as a share of an iteration.

    `counted` is False if it counts in no figure, because another trial of its cell is valid.
    """

    effect: float
    counted: bool


class Summary(Result):
    """The fields that all studies' results have; each study adds its own.

    `study` names the kind of study and the factor or baseline that it compares. Intervals hold the truth at all `looks`
    together (`roundabout run --until-decided`).
    """

    schema_version: Literal[4] = Field(default=4, alias="schema")
    experiment: str
    run: str
    study: StudyChoice
    testbed: Testbed
    cells: tuple[JobCell, ...]
    expectations: tuple[Verdict, ...]
    invalid_trials: tuple[InvalidTrial, ...]
    disturbed_trials: tuple[DisturbedTrial, ...] = ()
    looks: int = 1

    @property
    def speeds(self) -> tuple[JobSpeed, ...]:
        """Return each job's speed in each cell: over the baseline, else over the least load, else over that alone."""
        speedups = tuple(speed for cell in self.cells if (speed := cell.speed))
        return speedups or self._speeds_by_load or tuple(filter(None, (cell.speed_beside_alone for cell in self.cells)))

    @property
    def _speeds_by_load(self) -> tuple[JobSpeed, ...]:
        """Return each job's speed over that at the least load of the same cells; nothing if the load does not vary."""
        if len({cell.levels.get(LOAD) for cell in self.cells}) < 2:
            return ()
        least: dict[tuple[CellId, str], JobCell] = {}
        for cell in sorted(self.cells, key=lambda cell: float(cell.levels[LOAD])):
            least.setdefault((cell.id.without_factor(LOAD), cell.job), cell)
        beside = ((cell, least[cell.id.without_factor(LOAD), cell.job]) for cell in self.cells)
        return tuple(cell.speed_beside_load(base) for cell, base in beside if cell is not base)

    def record(self) -> dict[str, Any]:
        """Return the content of summary.json."""
        return self.model_dump(mode="json")


def common_fields(run: Run, study: StudyChoice) -> dict[str, Any]:
    """Return the common fields of all studies, by name."""
    cells, base, limits = cells_of(run), experiment_of(run).baseline, limits_of_cells(run)
    counted = counted_trials(run.trials())
    by_state = {state: [each for each in run.trials() if state_of_record(each) == state] for state in STATES}
    unused = [each for each in run.trials() if each["trial"] not in counted]
    spoilt = Counter((CellId.of(record), record.get("job")) for record in unused)
    testbed = run.manifest["testbed"]
    parts = tuple(
        _cell(
            cell, job, baseline_of(cells, cell, base.level, base.factor), str(base.level), limits[cell.id][job]
        ).model_copy(
            update={
                "invalid": spoilt[cell.id, job] + spoilt[cell.id, None],
                "marks_per_iteration": _marks(own.get(job)),
            }
        )
        for cell, own in zip(cells, marks_of_cells(run, cells), strict=True)
        for job in sorted(cell.times)
    )
    return {
        "schema": SCHEMA,
        "experiment": experiment_of(run).name,
        "run": run.id,
        "study": study,
        "testbed": Testbed(
            kind=testbed["kind"], emulated=testbed["emulated"], scale=testbed["scale"], fidelity=fidelity_of(run)
        ),
        "cells": parts,
        "expectations": with_needs(judge(CachedReading(run), study.kind or ""), experiment_of(run).repetitions),
        "looks": run.planned_looks,
        "invalid_trials": tuple(InvalidTrial(**_described(each)) for each in by_state["invalid"]),
        "disturbed_trials": tuple(
            DisturbedTrial(**_described(each), effect=each.get(DISTURBANCE) or 0.0, counted=each["trial"] in counted)
            for each in by_state["disturbed"]
        ),
    }


def gain_of_possible(cell: CellTrials, baseline: CellTrials | None, job: str, limits: Limits) -> float | None:
    """Return the gain over the baseline as a share of interleaving's possible gain, by medians over the last half.

    None without a baseline, and if the possible gain is below `MIN_POSSIBLE`, which is within the iterations'
    variation.
    """
    if baseline is None or baseline is cell or job not in baseline.times:
        return None
    fair, own = (float(np.median(np.concatenate(_last_half(each.repetitions(job))))) for each in (baseline, cell))
    possible = fair - limits.interleaved_ms
    return (fair - own) / possible if possible > MIN_POSSIBLE * limits.interleaved_ms else None


def _described(record: Mapping[str, Any]) -> dict[str, str]:
    words = (CellId.of(record).name, record.get("job"), f"repetition {record['repetition']}")
    name = ", ".join(word for word in words if word)
    return {"key": record["trial"], "name": name, "reason": record["reason"]}


def _cell(cell: CellTrials, job: str, baseline: CellTrials | None, called: str, limits: Limits) -> JobCell:
    repetitions = cell.repetitions(job)
    compared = None if baseline is None or baseline is cell else typical_speedup(baseline, cell, job)
    return JobCell(
        variant=cell.variant,
        levels=dict(cell.levels),
        job=job,
        repetitions=len(repetitions),
        iterations=len(repetitions[0]),
        **iteration_statistics(repetitions, "_ms", cell.disturbance),
        disturbance=cell.disturbance,
        baseline=called if compared else None,
        speedup=compared[0] if compared else None,
        speedup_ci95=compared[1] if compared else None,
        fluid=Fluid.model_validate(limits),
        limit=_limit(cell, is_fair=baseline is cell and cell.variant == called),
        last_half=LastHalf(
            **iteration_statistics(_last_half(repetitions), "_ms", cell.disturbance),
            gain_of_possible=gain_of_possible(cell, baseline, job, limits),
        ),
    )


def _limit(cell: CellTrials, *, is_fair: bool) -> LimitName:
    if cell.spec.one_job_at_a_time:
        return "alone"
    return "fair" if is_fair else "interleaved"


def _marks(marks: JobMarks | None) -> Marks | None:
    return marks and Marks(
        **iteration_statistics(marks.known),
        bound=marks.bound,
        unattributed_share=marks.unattributed_share,
        counted_by=marks.counted_by,
    )


def iteration_statistics(repetitions: list[Array], unit: str = "", disturbance: float | None = None) -> dict[str, Any]:
    """Return median, mean, 99th percentile, maximum and modes of all iterations; names end with `unit`.

    Intervals are wider by a `disturbance`, which is a share, or None for valid trials.
    """
    together = np.concatenate(repetitions)
    measured = {
        "median": estimate(repetitions, np.median, at_least=0),
        "mean": estimate(repetitions, np.mean, at_least=0),
    }
    tail = tail_estimate(repetitions)
    shown = {name: widen(each, disturbance) for name, each in {**measured, **({"p99": tail} if tail else {})}.items()}
    found: dict[str, tuple[float | None, Interval | None]] = {"p99": (None, None), **shown}
    return {
        "count": len(together),
        **{f"{name}{unit}": figure for name, (figure, _) in found.items()},
        f"max{unit}": float(together.max()),
        f"modes{unit}": find_modes(together),
        **{f"{name}_ci95{unit}": interval for name, (_, interval) in found.items()},
    }


def _last_half(repetitions: list[Array]) -> list[Array]:
    return [times[len(times) // 2 :] for times in repetitions]
