# SPDX-License-Identifier: Apache-2.0
"""The machines that took part in a run, and their measurements of a trial that each machine repeated."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import pyarrow as pa

from analysis.reading.cached_run import cached_per_run
from roundabout.store import Run

AGREE = 0.05
"""Largest difference of machines' median iteration times, as a share of the smallest, at which machines agree: a guess.
It decides a word in reports, but no figure.
"""


@dataclass(frozen=True)
class ReferenceTrial:
    """The trial that all machines measured: median iteration time in ms by job and machine."""

    variant: str
    repetition: int
    median_ms: Mapping[str, Mapping[str, float]]

    @property
    def largest_difference(self) -> float:
        """Return the largest difference in a job's times, as a share of the smallest."""
        return max(max(times.values()) / min(times.values()) - 1 for times in self.median_ms.values())


@dataclass(frozen=True)
class Machines:
    """The machines of a run: the number of trials and the facts of each machine, by its name.

    `differing` names the facts that differ between machines. `reference` is None without a repeated trial.
    """

    trials: Mapping[str, int]
    facts: Mapping[str, Mapping[str, Any]]
    differing: tuple[str, ...]
    reference: ReferenceTrial | None


@cached_per_run
def read_machines(run: Run) -> Machines:
    """Return the machines of the run's trials; empty for older runs, which do not record machines.

    Raises StoreError.
    """
    reported = [record["machine"] for record in run.trials() if "machine" in record]
    facts = {each["name"]: {name: value for name, value in each.items() if name != "name"} for each in reported}
    names = dict.fromkeys(name for each in facts.values() for name in each)
    differing = tuple(name for name in names if len({str(each.get(name)) for each in facts.values()}) > 1)
    counts = {name: sum(each["name"] == name for each in reported) for name in sorted(facts)}
    return Machines(counts, facts, differing, _reference(run))


def _reference(run: Run) -> ReferenceTrial | None:
    """Return the reference trial; None if only the first machine has a valid one."""
    again = [record for record in run.references() if record["valid"]]
    if not again:
        return None
    (first,) = [record for record in run.trials() if record["trial"] == again[0]["trial"]]
    by_job: dict[str, dict[str, float]] = defaultdict(dict)
    for record in (first, *again):
        for job, ms in _medians(run.table_of(record, "iterations")).items():
            by_job[job][record["machine"]["name"]] = ms
    return ReferenceTrial(first["variant"], first["repetition"], by_job)


def _medians(iterations: pa.Table) -> dict[str, float]:
    """Return medians by job, whose iterations last as long as their slowest worker's."""
    slowest: dict[str, dict[int, float]] = defaultdict(dict)
    for row in iterations.select(["job", "iteration", "iteration_ms"]).to_pylist():
        of_job = slowest[row["job"]]
        of_job[row["iteration"]] = max(of_job.get(row["iteration"], 0.0), row["iteration_ms"])
    return {job: median(each.values()) for job, each in slowest.items()}
