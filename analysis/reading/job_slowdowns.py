# SPDX-License-Identifier: Apache-2.0
"""The slowdowns of the jobs of mixes, from the timeline.json of each trial that counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellId, experiment_of
from analysis.reading.timelines import NAME, JobHistory, read_timeline
from analysis.statistics.intervals import Array
from roundabout.store import Run
from roundabout.store.trial_states import counted_trials


@dataclass(frozen=True)
class JobSlowdowns:
    """The histories of a cell's jobs, a tuple for each repetition."""

    id: CellId
    jobs: tuple[tuple[JobHistory, ...], ...]

    @property
    def slowdowns(self) -> list[Array]:
        """Return each job's time from its start to its end over its time alone, one array for each repetition."""
        return [_known(job.slowdown for job in jobs) for jobs in self.jobs]

    @property
    def queueing_s(self) -> list[Array]:
        """Return each job's time from its arrival to its start, s, one array for each repetition."""
        return [_known(job.queueing_s for job in jobs) for jobs in self.jobs]


def _known(values: Iterable[float | None]) -> Array:
    return np.array([value for value in values if value is not None])


@cached_per_run
def read_slowdowns(run: Run) -> list[JobSlowdowns]:
    """Return every cell with a trial that counts, in the experiment's order.

    Raises StoreError if a timeline cannot be read.
    """
    found: dict[CellId, list[tuple[JobHistory, ...]]] = {CellId(cell.levels): [] for cell in experiment_of(run).cells}
    counted = counted_trials(run.trials())
    for record in sorted(run.trials(), key=itemgetter("repetition")):
        path = run.path / "trials" / str(record["trial"]) / NAME
        if record["trial"] in counted and path.is_file():
            found[CellId.of(record)].append(read_timeline(path).jobs)
    return [JobSlowdowns(cell, tuple(jobs)) for cell, jobs in found.items() if jobs]
