# SPDX-License-Identifier: Apache-2.0
"""What a run measured, per variant, levels, job and repetition: what summaries, tables and plots begin from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.bandwidth import bytes_between
from analysis.bootstrap import Array
from roundabout.spec import Experiment, TrialSpec
from roundabout.store import Run

Span = tuple[int, int]
"""Begin and end in ns on the run's clock."""


@dataclass
class Measured:
    """The valid trials of one variant at one combination of levels.

    `times` holds, per job and repetition, the iteration times in ms, in order. A job's iteration lasts as long as its
    slowest worker's, from that worker's own start to its own end of communication: no two clocks are compared.
    """

    variant: str
    levels: dict[str, Any]
    spec: TrialSpec
    trials: list[str] = field(default_factory=list)
    times: dict[str, dict[int, Array]] = field(default_factory=dict)

    @property
    def surroundings(self) -> dict[str, Any]:
        """The levels of all factors but the variant; what shares them may be compared."""
        return {factor: level for factor, level in self.levels.items() if factor != "variant"}

    def repetitions(self, job: str) -> list[Array]:
        """Iteration times of one job, one array a repetition."""
        return [self.times[job][number] for number in sorted(self.times[job])]

    def together(self, jobs: list[str]) -> list[Array]:
        """Iteration times of `jobs` side by side, shape (iterations, jobs), of the repetitions that they all have."""
        common = set.intersection(*(set(self.times[job]) for job in jobs))
        return [np.column_stack([self.times[job][number] for job in jobs]) for number in sorted(common)]


def experiment_of(run: Run) -> Experiment:
    """The experiment as it was resolved when the run began."""
    return Experiment.model_validate(run.manifest["experiment"])


def measured(run: Run) -> list[Measured]:
    """Everything that the run's valid trials measured, in the order of the experiment's levels."""
    found: dict[tuple[str, str], Measured] = {}
    for record in run.trials():
        if record["valid"]:
            key = record["variant"], record["levels"]
            spec = TrialSpec.model_validate(record["spec"])
            found.setdefault(key, Measured(record["variant"], json.loads(record["levels"]), spec))
            found[key].trials.append(record["trial"])
    for (variant, levels, job, repetition), times in slowest_workers(run.table("iterations")).items():
        found[variant, levels].times.setdefault(job, {})[repetition] = times
    factors = experiment_of(run).factors
    order = {factor: {level: place for place, level in enumerate(levels)} for factor, levels in factors.items()}
    return sorted(found.values(), key=lambda each: [order[factor][level] for factor, level in each.levels.items()])


def slowest_workers(iterations: pa.Table) -> dict[tuple[str, str, str, int], Array]:
    """Per variant, levels (text), job and repetition: each iteration's time in ms of the job's slowest worker."""
    keys = ["variant", "levels", "job", "repetition"]
    slowest = iterations.group_by([*keys, "iteration"]).aggregate([("iteration_ms", "max")]).sort_by("iteration")
    series = slowest.group_by(keys, use_threads=False).aggregate([("iteration_ms_max", "list")]).sort_by("repetition")
    return {tuple(row[key] for key in keys): np.array(row["iteration_ms_max_list"]) for row in series.to_pylist()}


def first_shares(run: Run, cell: Measured, one: str, other: str) -> list[float]:
    """Bytes sent by the hosts of job `one` over those of job `other`, per trial, while both send for the first time.

    That is from the later end of compute to the earlier end of communication in the first two iterations that overlap,
    by the counters of the hosts' interfaces (every 10 ms, taken as linear between samples; headers included).
    """
    iterations, counters = run.table("iterations"), run.table("counters")
    shares = []
    for trial in cell.trials:
        window = _first_overlap(_communication(iterations, trial, one), _communication(iterations, trial, other))
        if window is not None:
            sent = [_sent_bytes(counters, trial, cell.spec.jobs[job].workers, window) for job in (one, other)]
            shares.append(sent[0] / sent[1])
    return shares


def matches(levels: Mapping[str, Any], at: Mapping[str, Any] | None) -> bool:
    """Whether the factors named in `at` have these levels."""
    return (at or {}).items() <= levels.items()


def rows_of(table: pa.Table, **values: Any) -> pa.Table:
    """The rows of `table` whose columns have these values."""
    return table.filter(reduce(and_, (pc.field(column) == value for column, value in values.items())))


def _communication(iterations: pa.Table, trial: str, job: str) -> list[Span]:
    """When a job communicates, iteration by iteration: from its first worker's end of compute to its last one's end."""
    rows = rows_of(iterations, trial=trial, job=job).group_by("iteration")
    spans = rows.aggregate([("compute_end_ns", "min"), ("comm_end_ns", "max")]).sort_by("iteration")
    return list(zip(spans["compute_end_ns_min"].to_pylist(), spans["comm_end_ns_max"].to_pylist(), strict=True))


def _first_overlap(one: list[Span], other: list[Span]) -> Span | None:
    overlaps = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    return min(((begin, end) for begin, end in overlaps if begin < end), default=None)


def _sent_bytes(counters: pa.Table, trial: str, hosts: tuple[str, ...], window: Span) -> float:
    samples = (rows_of(counters, trial=trial, host=host).sort_by("controller_ns") for host in hosts)
    return sum(
        bytes_between(rows["controller_ns"].to_numpy(), rows["tx_bytes"].to_numpy(), *window) for rows in samples
    )
