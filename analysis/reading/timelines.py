# SPDX-License-Identifier: Apache-2.0
"""The history of a cluster's jobs: the timeline.json of each trial (docs/reference/cluster.md), and their iterations.

A cluster trial's jobs are allocations: a trace's job on one placement. No two trials share allocations, so cells.py
does not read such trials.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellId, experiment_of
from analysis.reading.congestion.marks import per_iteration
from analysis.reading.data import filter_rows, iterations
from analysis.statistics.cumulative_counter import Floats
from analysis.statistics.intervals import Array
from roundabout.spec import TrialSpec
from roundabout.store import Run, StoreError
from roundabout.store.files import LOST_MESSAGE, read_json
from roundabout.store.trial_states import counted_trials

NAME = "timeline.json"
Names = NDArray[np.object_]


class _StoredModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Request(_StoredModel):
    """A job of a trace, as it was submitted."""

    name: str
    model: str
    batch: int
    workers: int
    iterations: int
    arrives_s: float


class Allocation(_StoredModel):
    """A job on one placement, with at most one timetable. `name` is the name of the trial's job that played it."""

    name: str
    job: str
    begins_s: float
    ends_s: float
    workers: tuple[str, ...]
    iterations: int
    shift_ms: float | None = None
    period_ms: float | None = None


class Decision(_StoredModel):
    """A scheduler's answer.

    `scores` are those of its candidates if Cassini ranked them, None for a candidate that its rule left out.
    `migrated` names the jobs of which `migrate` or `fragments` moved a worker.
    """

    at_s: float
    why: str
    job: str | None
    scores: tuple[float | None, ...] | None = None
    migrated: tuple[str, ...] = ()

    @property
    def known_scores(self) -> list[float]:
        """Return the scores of the candidates that the rule did not leave out; the best of these was chosen."""
        return [score for score in self.scores or () if score is not None]


class JobHistory(_StoredModel):
    """A job from its arrival to its end; `dedicated_s` is its time in a cluster of its own."""

    name: str
    arrived_s: float
    started_s: float | None
    ended_s: float | None
    dedicated_s: float
    moves: int

    @property
    def completion_s(self) -> float | None:
        """Return the time from the job's arrival to its end, s; None if it did not end."""
        return None if self.ended_s is None else self.ended_s - self.arrived_s

    @property
    def queueing_s(self) -> float | None:
        """Return the time from the job's arrival to its first placement, s; None if it was never placed."""
        return None if self.started_s is None else self.started_s - self.arrived_s

    @property
    def slowdown(self) -> float | None:
        """Return the time from the job's first placement to its end over that in a dedicated cluster, or None."""
        if self.started_s is None or self.ended_s is None:
            return None
        return (self.ended_s - self.started_s) / self.dedicated_s

    @property
    def fairness(self) -> float | None:
        """Return Themis' finish-time fairness rho: time in the shared cluster over that in a dedicated one, or None."""
        return None if self.completion_s is None else self.completion_s / self.dedicated_s


class Timeline(_StoredModel):
    """The timeline of a cluster trial, in seconds from the trace's start; allocations count from the trial's start."""

    version: Literal[1, 2] = Field(alias="schema")
    scheduler: str
    cassini: bool
    requests: tuple[Request, ...]
    allocations: tuple[Allocation, ...] = Field(alias="stints")
    decisions: tuple[Decision, ...]
    jobs: tuple[JobHistory, ...]

    @cached_property
    def models(self) -> dict[str, str]:
        """Return each job's model, by the job's name."""
        return {each.name: each.model for each in self.requests}

    @property
    def moves(self) -> list[Allocation]:
        """Return the allocations that began on other workers than their job had before."""
        before: dict[str, Allocation] = {}
        moved = []
        for allocation in sorted(self.allocations, key=lambda each: each.begins_s):
            if allocation.job in before and before[allocation.job].workers != allocation.workers:
                moved.append(allocation)
            before[allocation.job] = allocation
        return moved


@dataclass(frozen=True)
class CompletedIterations:
    """Every iteration that a trial's jobs completed, in the order of jobs and iterations: arrays of equal length.

    `models` and `jobs` name the model and job of each iteration, and `start_s` is its begin from the trial's start.
    `dedicated_ms` is the time with the same workers and no other traffic, as the allocation's profile gives it.
    `computing_ms` is the computing time of all its workers together. `marks` counts ECN marks of its packets,
    nan if unknown.
    """

    models: Names
    jobs: Names
    start_s: Floats
    times_ms: Floats
    dedicated_ms: Floats
    computing_ms: Floats
    marks: Floats

    @property
    def slowdowns(self) -> Floats:
        """Return each iteration's time over its time in a dedicated cluster."""
        return self.times_ms / self.dedicated_ms

    def of_model(self, model: str) -> "CompletedIterations":
        """Return the iterations of one model's jobs."""
        own = self.models == model
        return CompletedIterations(*(getattr(self, each.name)[own] for each in fields(self)))


@dataclass(frozen=True)
class ClusterTrial:
    """A trial of a cluster that counts: its timeline and its completed iterations."""

    key: str
    spec: TrialSpec
    timeline: Timeline
    start_ns: int
    points: CompletedIterations

    @property
    def window_start_s(self) -> float | None:
        """Return the start of the trial's window in the trace, s; None if the trial played the whole trace."""
        cluster = self.spec.cluster
        return cluster.slice.from_s if cluster and cluster.slice else None

    @property
    def gpu_utilization(self) -> float:
        """Return the share of time for which GPUs compute completed iterations, of the GPUs of jobs with traffic.

        GPUs count from an allocation's begin to its end.
        """
        own = (allocation for allocation in self.timeline.allocations if allocation.name in self.spec.jobs)
        had_s = sum(len(allocation.workers) * (allocation.ends_s - allocation.begins_s) for allocation in own)
        return float(self.points.computing_ms.sum()) / 1e3 / had_s

    @property
    def migrations_an_hour(self) -> float:
        """Return the number of jobs that migration moved, each time that one was moved, by the hours of the trace.

        Decisions are those from the trace's start to the trial's last allocation, also if the trial played a window.
        """
        end_s = max((allocation.ends_s for allocation in self.timeline.allocations), default=0.0)
        hours = ((self.window_start_s or 0.0) + end_s) / 3600
        return sum(len(each.migrated) for each in self.timeline.decisions) / hours if hours else 0.0


@dataclass(frozen=True)
class ClusterCell:
    """The trials of one variant at one set of other levels that count, by repetition.

    Trials of equal repetitions share a trace.
    """

    id: CellId
    trials: Mapping[int, ClusterTrial]

    @property
    def variant(self) -> str:
        """Return the level of the factor `variant`."""
        return self.id.variant

    @property
    def first(self) -> ClusterTrial:
        """Return the trial of the lowest repetition, which figures show."""
        return self.trials[min(self.trials)]

    @property
    def times_ms(self) -> list[Array]:
        """Return the times of all iterations of all jobs, ms, one array for each repetition."""
        return [trial.points.times_ms for trial in self.trials.values()]

    @property
    def slowdowns(self) -> list[Array]:
        """Return all iteration times over those in a dedicated cluster, one array for each repetition."""
        return [trial.points.slowdowns for trial in self.trials.values()]

    @property
    def models(self) -> list[str]:
        """Return the models of the jobs that completed an iteration."""
        return sorted({model for trial in self.trials.values() for model in trial.points.models})

    def marks(self, model: str) -> list[Array]:
        """Return the known marks per iteration of a model's jobs, one array for each repetition that has any."""
        counted = (trial.points.of_model(model).marks for trial in self.trials.values())
        return [known for each in counted if len(known := each[np.isfinite(each)])]


@cached_per_run
def read_clusters(run: Run) -> list[ClusterCell]:
    """Return every cell that has a trial that counts, with a timeline and a completed iteration, in order.

    Raises StoreError if a timeline cannot be read.
    """
    found: dict[CellId, dict[int, ClusterTrial]] = {CellId(cell.levels): {} for cell in experiment_of(run).cells}
    table, counted = _with_marks(run), counted_trials(run.trials())
    for record in sorted(run.trials(), key=itemgetter("repetition")):
        path = run.path / "trials" / str(record["trial"]) / NAME
        if record["trial"] in counted and path.is_file():
            trial = _trial(record, read_timeline(path), table)
            if len(trial.points.times_ms):
                found[CellId.of(record)][record["repetition"]] = trial
    return [ClusterCell(cell, trials) for cell, trials in found.items() if trials]


def cell_of_variant(cells: Iterable[ClusterCell], cell: ClusterCell, variant: str) -> ClusterCell | None:
    """Return the cell of `variant` that equals `cell` in all other factors; None if there is none."""
    alike = (each for each in cells if each.id.without_factor("variant") == cell.id.without_factor("variant"))
    return next((each for each in alike if each.variant == variant), None)


def pair_by_repetition(
    over: ClusterCell, of: ClusterCell, what: Callable[[ClusterTrial], Array]
) -> list[tuple[Array, Array]]:
    """Return pairs of `what` of both cells, for each repetition that both have; its trials share their trace."""
    return [(what(over.trials[number]), what(trial)) for number, trial in of.trials.items() if number in over.trials]


def read_timeline(path: Path) -> Timeline:
    """Return the timeline in a file. Raises StoreError if it cannot be read."""
    try:
        return Timeline.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise StoreError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}", LOST_MESSAGE) from error


def _trial(record: Mapping[str, Any], timeline: Timeline, table: pa.Table) -> ClusterTrial:
    spec = TrialSpec.model_validate(record["spec"])
    rows = filter_rows(table, trial=record["trial"])
    job_of = {allocation.name: allocation.job for allocation in timeline.allocations}
    allocations = rows["job"].combine_chunks().dictionary_encode()
    names, place = allocations.dictionary.to_pylist(), allocations.indices.to_numpy()
    jobs = np.array([job_of[name] for name in names], object)
    models = np.array([timeline.models[job] for job in jobs], object)
    alone_ms = np.array([spec.jobs[name].profile.alone_ms for name in names])
    computing_ms = np.array([spec.jobs[name].profile.compute_ms * len(spec.jobs[name].workers) for name in names])
    start_ns = int(record["start_ns"])
    points = CompletedIterations(
        models=models[place],
        jobs=jobs[place],
        start_s=(rows["start_ns"].to_numpy() - start_ns) / 1e9,
        times_ms=rows["iteration_ms"].to_numpy(),
        dedicated_ms=alone_ms[place],
        computing_ms=computing_ms[place],
        marks=rows["marks"].to_numpy(),
    )
    return ClusterTrial(str(record["trial"]), spec, timeline, start_ns, points)


def _with_marks(run: Run) -> pa.Table:
    """Return the iterations of all jobs, and marks: null if they are not known."""
    table, counted = iterations(run), per_iteration(run)
    keys = ["trial", "job", "iteration"]
    if counted is None:
        return table.append_column("marks", pa.nulls(len(table), pa.float64()))
    sums = counted.iterations.group_by(keys).aggregate([("count", "sum", pc.ScalarAggregateOptions(skip_nulls=False))])
    marks = sums.rename_columns({"count_sum": "marks"}).set_column(3, "marks", sums["count_sum"].cast(pa.float64()))
    return table.join(marks, keys).sort_by([(key, "ascending") for key in keys])
