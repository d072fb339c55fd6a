# SPDX-License-Identifier: Apache-2.0
"""Iterations, bandwidth, queues and marks of a run's trials, each as one DataFrame.

Only trials that count are included: the valid ones, and the disturbed ones of each cell without a valid one.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analysis.dataframes.frames import TRIAL, frame_of_rows, to_frame, trial_columns
from analysis.reading import data
from analysis.reading.cells import cells_of
from analysis.reading.congestion.marks import per_iteration
from analysis.statistics.cumulative_counter import EMPTY, CumulativeCounter, Floats, Integers
from roundabout.core.errors import UsageError
from roundabout.store import Run

if TYPE_CHECKING:
    import pandas as pd

ITERATION = {"job": pa.string(), "iteration": pa.int64()}
RATE = {"start_ms": pa.float64(), "gbps": pa.float64()}


def iterations(run: Run) -> "pd.DataFrame":
    """Return the iterations of all jobs, one row each, in the order of trials, jobs and iterations.

    Columns: trial, variant, setting (levels of the other factors), repetition, job, iteration (from 0); start_ms,
    compute_end_ms and end_ms (end of communication), ms since the trial's first iteration began; iteration_ms, the
    slowest worker's from its own start to its own end. A job's workers are taken together.
    """
    found = to_frame(data.iterations(run))
    named = trial_columns(run)
    origin_ns = found.groupby("trial")["start_ns"].transform("min")
    for column, instant in {
        "start_ms": "start_ns",
        "compute_end_ms": "compute_end_ns",
        "end_ms": "comm_end_ns",
    }.items():
        found[column] = (found[instant] - origin_ns) / 1e6
    found["setting"] = [named[trial]["setting"] for trial in found["trial"]]
    return found[[*TRIAL, *ITERATION, "start_ms", "compute_end_ms", "end_ms", "iteration_ms"]]


def bandwidth(run: Run, *, trial: str | None = None, window_ms: float = 10.0) -> "pd.DataFrame":
    """Return how fast each job sends, one row for each job and window, of all trials or of one.

    Columns: trial, variant, setting, repetition, job, start_ms (of the window, since the trial's first iteration began)
    and gbps, the mean rate on the wire of the job's first worker; nan where its counter is unknown. All workers of a
    ring send at the same pace. Counters are sampled every 10 ms: narrower windows interpolate. Raises UsageError for an
    unknown trial.
    """
    edges_ns = _edges_ns(run, trial, window_ms)
    sent = data.counters(run, "tx_bytes")
    rows = (
        {"trial": key, "job": job, **window}
        for cell in cells_of(run)
        for key in cell.trials
        if key in edges_ns
        for job in cell.jobs
        for window in _rates(sent.get(data.HostPlace(key, cell.spec.jobs[job].workers[0]), EMPTY), edges_ns[key])
    )
    return frame_of_rows(_with_trial(run, rows), {**TRIAL, "job": pa.string(), **RATE})


def queues(run: Run, *, trial: str | None = None, window_ms: float = 10.0) -> "pd.DataFrame":
    """Return how full links and their queues are, one row for each switch port and window, of all trials or of one.

    Columns: trial, variant, setting, repetition, link, towards (the host or switch at the link's other end), start_ms
    as in `bandwidth`, gbps (sent into the link, headers included, mean of the window), and backlog_kb (waiting at the
    window's start, kB of 1000 bytes; nan where unknown). Without rows where switches cannot be sampled. Raises
    UsageError for an unknown trial.
    """
    edges_ns = _edges_ns(run, trial, window_ms)
    waiting = data.backlogs(run)
    rows = (
        {"trial": at.trial, "link": at.link, "towards": at.towards, **window}
        for at, port in data.ports(run, "tx_bytes", tuple(edges_ns)).items()
        for window in _rates(port, edges_ns[at.trial], waiting.get(at))
    )
    columns = {**TRIAL, "link": pa.string(), "towards": pa.string(), **RATE, "backlog_kb": pa.float64()}
    return frame_of_rows(_with_trial(run, rows), columns)


def marks(run: Run) -> "pd.DataFrame":
    """Return the ECN marks of each iteration, one row for each job and iteration; without rows if nothing counted them.

    Columns: trial, variant, setting, repetition, job, iteration (from 0), marks (segments, over all ports on the job's
    paths; nan if unknown) and bound (the largest error of marks). Counts are read from switch ports, or from NICs where
    switches report none.
    """
    counted = per_iteration(run)
    columns = {**TRIAL, **ITERATION, "marks": pa.float64(), "bound": pa.float64()}
    if counted is None:
        return frame_of_rows([], columns)
    of_ports = to_frame(counted.iterations.select(["trial", "job", "iteration", "count", "bound"]))
    sums = of_ports.groupby(["trial", "job", "iteration"])[["count", "bound"]].agg(lambda each: each.sum(skipna=False))
    rows = sums.rename(columns={"count": "marks"}).reset_index().to_dict("records")
    return frame_of_rows(_with_trial(run, rows), columns)


def _edges_ns(run: Run, trial: str | None, window_ms: float) -> dict[str, Integers]:
    """Return by trial the edges of its windows, ns, from its first iteration's start to its last one's end."""
    found = {}
    for row in data.query(
        run,
        "select trial, min(start_ns) as begin_ns, max(comm_end_ns) as end_ns from iterations group by all order by all",
    ).to_pylist():
        if trial in (None, row["trial"]):
            count = int(np.ceil((row["end_ns"] - row["begin_ns"]) / (window_ms * 1e6)))
            found[row["trial"]] = row["begin_ns"] + np.rint(np.arange(count + 1) * window_ms * 1e6).astype(np.int64)
    if trial is not None and not found:
        raise UsageError(
            f"trial {trial} has no iterations in {run.path}", "take one of the column `trial` of `iterations(run)`"
        )
    return found


def _rates(
    counter: CumulativeCounter, edges_ns: Integers, backlog: tuple[Integers, Integers] | None = None
) -> Iterator[dict[str, float]]:
    """Yield the mean rate of each window, and the backlog at its start where samples of it are given."""
    starts_ms = (edges_ns[:-1] - edges_ns[0]) / 1e6
    gbps: Floats = counter.rate(edges_ns) * 8 / 1e9
    if backlog is None:
        return ({"start_ms": at, "gbps": rate} for at, rate in zip(starts_ms, gbps, strict=True))
    backlog_kb = np.interp(edges_ns[:-1], *backlog) / 1e3
    return (
        {"start_ms": at, "gbps": rate, "backlog_kb": waiting}
        for at, rate, waiting in zip(starts_ms, gbps, backlog_kb, strict=True)
    )


def _with_trial(run: Run, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows with the columns that name their trial."""
    named = trial_columns(run)
    return ({**named[row["trial"]], **row} for row in rows)
