# SPDX-License-Identifier: Apache-2.0
"""Recoveries of jobs from events of links: how long iterations are slower than before, and what that costs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellTrials, cells_of
from analysis.reading.data import iterations
from analysis.statistics.cumulative_counter import Floats
from roundabout.store import Run

TOLERANCE = 0.05
"""Share by which an iteration may be longer than before an event and still count as recovered."""
LASTING = 3
"""Number of iterations running that must be within the tolerance, or all that are left if these are fewer."""


class JobTimes(NamedTuple):
    """The iterations of a job in a trial, in order: their starts, ends and lengths, in ms from the agreed start."""

    start_ms: Floats
    end_ms: Floats
    iteration_ms: Floats


class Recovery(NamedTuple):
    """A job's recovery from one event.

    `recovery_ms` is the time from the event until the first iteration begins from which on iterations are as short as
    before; 0 if none was longer, and infinite if none is.
    """

    recovery_ms: float
    lost_iterations: float


@cached_per_run
def job_times(run: Run) -> dict[tuple[str, str], JobTimes]:
    """Return the iterations of each job in each trial, by trial and job."""
    starts_ns = {record["trial"]: record.get("start_ns") for record in run.trials()}
    table = iterations(run).select(["trial", "job", "start_ns", "comm_end_ns", "iteration_ms"])
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for row in table.to_pylist():
        if (zero_ns := starts_ns.get(row["trial"])) is not None:
            instants = ((row[name] - zero_ns) / 1e6 for name in ("start_ns", "comm_end_ns"))
            found.setdefault((row["trial"], row["job"]), []).append((*instants, row["iteration_ms"]))
    return {key: JobTimes(*np.array(rows, float).T) for key, rows in found.items()}


@cached_per_run
def recoveries(run: Run) -> dict[tuple[str, str], list[Recovery]]:
    """Return the recoveries of each job from each event, by trial and job, in the order of events.

    Jobs without an iteration before the first event are left out.
    """
    times = job_times(run)
    found = {}
    for cell in cells_of(run):
        events_ms = event_instants(cell)
        for key in [(trial, job) for trial in cell.trials for job in cell.jobs] if events_ms else ():
            if key in times and (times[key].end_ms <= events_ms[0]).any():
                found[key] = find_recoveries(times[key], events_ms)
    return found


def event_instants(cell: CellTrials) -> list[float]:
    """Return the instants of a cell's events, in ms from the agreed start, in order."""
    return sorted(event.at_ms for event in cell.spec.events)


def usual_ms(times: JobTimes, events_ms: Sequence[float]) -> float:
    """Return the median iteration time before the first event, ms."""
    return float(np.median(times.iteration_ms[times.end_ms <= events_ms[0]]))


def find_recoveries(times: JobTimes, events_ms: Sequence[float]) -> list[Recovery]:
    """Return the recovery from each event. `events_ms` are their instants in order.

    An event has the iteration in which it comes, unless another event came earlier in it, and those that begin after
    it and before the next event. What they take more than before, until the recovery, are lost iterations.
    """
    before_ms = usual_ms(times, events_ms)
    is_slow = times.iteration_ms > (1 + TOLERANCE) * before_ms
    owners = _owners(times, events_ms)
    count = len(is_slow)
    found = []
    for number, at_ms in enumerate(events_ms):
        later = np.flatnonzero(times.end_ms > at_ms)
        back = next((place for place in later if not is_slow[place : place + LASTING].any()), count)
        own = (owners == number) & (np.arange(count) < back)
        recovery_ms = max(float(times.start_ms[back]) - at_ms, 0.0) if back < count else math.inf
        found.append(Recovery(recovery_ms, float((times.iteration_ms[own] / before_ms - 1).sum())))
    return found


def _owners(times: JobTimes, events_ms: Sequence[float]) -> np.ndarray:
    """Return the number of the event that each iteration belongs to, -1 before the first."""
    before = np.searchsorted(events_ms, times.start_ms, side="right") - 1
    until = np.searchsorted(events_ms, times.end_ms, side="left") - 1
    return np.where(until > before, before + 1, before)
