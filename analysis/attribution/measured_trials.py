# SPDX-License-Identifier: Apache-2.0
"""The trials of a run whose delays can be attributed."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from analysis.attribution.counterfactuals import Computing
from analysis.attribution.decomposition import MeasuredTrial
from analysis.reading.cells import CellTrials
from analysis.reading.data import query
from roundabout.spec import TrialSpec
from roundabout.spec.job import ResolvedJob
from roundabout.store import Run

RECOVERY = "retransmission"
"""The parameter of a transport that says how lost packets are sent again."""
DIGITS = 6
"""Of stretches. Instants in tables are rounded to 1 ns, which is less of a computing time of 1 ms."""


def measured_trials(run: Run, cells: Collection[CellTrials]) -> dict[str, MeasuredTrial]:
    """Return the trials of the cells that count, by their keys, with mean iteration times and computing times.

    Raises StoreError if a table cannot be read.
    """
    keys = [key for cell in cells for key in cell.trials]
    records = {record["trial"]: record for record in run.trials()}
    means = _iteration_means(run)
    computed = _computing_times(run)
    found = {}
    for key in keys:
        record = records[key]
        # No model captures packets.
        spec = TrialSpec.model_validate(record["spec"]).model_copy(update={"capture": None})
        spec = _with_recovery_of(spec, record.get("ways", {}))
        own = {job: means[key, job] for job in spec.jobs if (key, job) in means}
        found[key] = MeasuredTrial(spec, int(record["seed"]), own, _computing(spec, key, computed))
    return found


def _with_recovery_of(spec: TrialSpec, datapaths: Mapping[str, str]) -> TrialSpec:
    """Return the trial as its datapaths recover from losses: TCP sends only what was lost again, NICs go back."""

    def recovers(name: str, job: ResolvedJob) -> ResolvedJob:
        declared = job.transport.declaration.parameters if job.transport.declaration else ()
        if datapaths.get(name) != "TCP" or RECOVERY not in {each.name for each in declared}:
            return job
        own = job.transport.model_copy(update={RECOVERY: "selective_repeat"})
        return job.model_copy(update={"transport": own})

    return spec.model_copy(update={"jobs": {name: recovers(name, job) for name, job in spec.jobs.items()}})


def cells_without_cluster(cells: Collection[CellTrials], names: Collection[str]) -> Iterator[CellTrials]:
    """Yield the cells of jobs that the experiment itself names, or only those with a level of these `names`."""
    for cell in cells:
        if not cell.spec.cluster and (not names or {*map(str, cell.levels.values())} & {*names}):
            yield cell


def _iteration_means(run: Run) -> Mapping[tuple[str, str], float]:
    """Return the mean iteration time by trial and job, ms: of an iteration, that of its slowest worker."""
    rows = query(
        run,
        """
        select trial, job, avg(ms) as ms from (
          select trial, job, iteration, max(iteration_ms) as ms from iterations group by all
        ) group by all
        """,
    )
    return {(row["trial"], row["job"]): row["ms"] for row in rows.to_pylist()}


def _computing_times(run: Run) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Return the times before the first communication, ms, by trial and job: `slowest` and `mean` of each iteration."""
    rows = query(
        run,
        """
        select trial, job, list(slowest order by iteration) as slowest, list(mean order by iteration) as mean from (
          select trial, job, iteration, max(compute_ms - coalesce(delay_ms, 0)) as slowest,
                 avg(compute_ms - coalesce(delay_ms, 0)) as mean from iterations group by all
        ) group by all
        """,
    )
    return {(row["trial"], row["job"]): row for row in rows.to_pylist()}


def _computing(spec: TrialSpec, key: str, computed: Mapping[tuple[str, str], Mapping[str, Any]]) -> Computing:
    """Return the stretches of all jobs. A job that does not begin by computing has 1."""
    slowest: dict[str, tuple[float, ...]] = {}
    mean: dict[str, tuple[float, ...]] = {}
    for name in spec.jobs:
        lead_ms = _leading_ms(spec, name)
        row = computed.get((key, name))
        for stretches, column in ((slowest, "slowest"), (mean, "mean")):
            stretches[name] = _stretches(row[column], lead_ms) if row and lead_ms else (1.0,)
    return Computing(slowest, mean)


def _leading_ms(spec: TrialSpec, job: str) -> float:
    """Return for how long an iteration computes before its first communication, ms."""
    total = 0.0
    for phase in spec.jobs[job].profile.phases:
        if phase.compute_ms is None:
            break
        total += phase.compute_ms
    return total


def _stretches(times_ms: list[float], lead_ms: float) -> tuple[float, ...]:
    found = tuple(np.round(np.array(times_ms) / lead_ms, DIGITS).tolist())
    return (1.0,) if {*found} == {1.0} else found
