# SPDX-License-Identifier: Apache-2.0
"""Trials over time: communication of each job, its rate, and the bottleneck's queue."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.reading.cells import CellTrials, communication
from analysis.reading.data import HostPlace, PortPlace, backlogs, counters, filter_rows, iterations
from analysis.statistics.cumulative_counter import EMPTY, CumulativeCounter, Floats, Integers
from roundabout.store import Run

BIN_MS = 10.0
"""Width of a bin: the period at which counters are sampled."""


@dataclass(frozen=True)
class TrialTrace:
    """A trial over time, in ms from the start of its first job. Arrays by bin have one value for each `BIN_MS`.

    `spans` holds begin and end of communication by job, shape (iterations, 2). `rates` are those of each job's first
    worker on the wire, Gbit/s, because all workers of a ring send at the same pace. `backlog_bytes` is the bottleneck's
    backlog at the bins' begins, in the first job's direction; None if it was not measured.
    """

    cell: CellTrials
    trial: str
    edges_ms: Floats
    spans: dict[str, Floats]
    rates: dict[str, Floats]
    backlog_bytes: Floats | None


def read_traces(run: Run, cells: Sequence[CellTrials]) -> list[list[TrialTrace]]:
    """Return the trace of every trial of each cell."""
    of_jobs, sent, waiting = iterations(run), counters(run, "tx_bytes"), backlogs(run)
    return [[_trace(cell, trial, of_jobs, sent, waiting) for trial in cell.trials] for cell in cells]


def median_trial(trials: Sequence[TrialTrace]) -> TrialTrace:
    """Return the trial of median duration; the shorter of the middle two if their number is even."""
    return sorted(trials, key=lambda trace: max(each[-1, 1] for each in trace.spans.values()))[(len(trials) - 1) // 2]


def communication_spans(run: Run, cell: CellTrials, trial: str) -> tuple[int, dict[str, Floats]]:
    """Return the start of a trial's first job, ns, and the spans of communication of each job.

    Spans are in ms from that start, arrays of shape (iterations, 2).
    """
    return _communicating(iterations(run), cell, trial)


def spans_of_cells(run: Run, cells: Iterable[CellTrials]) -> dict[str, dict[str, Floats]]:
    """Return the spans of communication by trial and job, for cells whose jobs run at the same time.

    Spans are in ms from the first job's start.
    """
    of_jobs = iterations(run)
    sharing = [cell for cell in cells if not cell.spec.one_job_at_a_time]
    return {trial: _communicating(of_jobs, cell, trial)[1] for cell in sharing for trial in cell.trials}


def _communicating(of_jobs: pa.Table, cell: CellTrials, trial: str) -> tuple[int, dict[str, Floats]]:
    start_ns = min(filter_rows(of_jobs, trial=trial)["start_ns"].to_pylist())
    return start_ns, {job: (communication(of_jobs, trial, job) - start_ns) / 1e6 for job in cell.jobs}


def _trace(
    cell: CellTrials,
    trial: str,
    of_jobs: pa.Table,
    sent: Mapping[HostPlace, CumulativeCounter],
    waiting: Mapping[PortPlace, tuple[Integers, Integers]],
) -> TrialTrace:
    start_ns, spans = _communicating(of_jobs, cell, trial)
    edges_ms = np.arange(0.0, max(each[-1, 1] for each in spans.values()) + BIN_MS, BIN_MS)
    edges_ns = start_ns + (edges_ms * 1e6).astype(np.int64)
    firsts = {job: HostPlace(trial, cell.spec.jobs[job].workers[0]) for job in spans}
    rates = {job: sent.get(place, EMPTY).rate(edges_ns) * 8 / 1e9 for job, place in firsts.items()}
    port = _bottleneck_port(cell, trial)
    samples = waiting.get(port) if port is not None else None
    return TrialTrace(
        cell, trial, edges_ms, spans, rates, None if samples is None else np.interp(edges_ns[:-1], *samples)
    )


def _bottleneck_port(cell: CellTrials, trial: str) -> PortPlace | None:
    """Return the bottleneck in the direction in which the first job's first worker sends across it."""
    link = cell.spec.topology.bottleneck
    first = next(iter(cell.spec.jobs.values()))
    hops = [hop for pair in first.pairs[:1] for hop in cell.spec.topology.path(*pair)]
    return next((PortPlace(trial, hop.link.name, hop.receiver) for hop in hops if hop.link == link), None)


def mean_per_iteration(trace: TrialTrace, values: Floats, job: str) -> Floats:
    """Return the mean of `values`, one for each bin, over each iteration of `job`, from end to end of communication."""
    ends = np.minimum(np.searchsorted(trace.edges_ms, trace.spans[job][:, 1]), len(values))
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.diff(total[ends], prepend=0.0) / np.maximum(np.diff(ends, prepend=0), 1)


def shared_share(by_job: Mapping[str, Floats], begin_ms: float, end_ms: float) -> float:
    """Return the share of communication time between `begin_ms` and `end_ms` in which several jobs communicate."""
    return shared_share_of_spans(by_job.values(), begin_ms, end_ms)


def shared_share_of_spans(spans: Iterable[Floats], begin: float, end: float) -> float:
    """Return the share of the time covered by any span that several spans cover, between `begin` and `end`."""
    clipped = np.concatenate([np.clip(each, begin, end) for each in spans])
    edges, steps = clipped.T.ravel(), np.repeat([1, -1], len(clipped))
    order = np.argsort(edges, kind="stable")
    lengths, senders = np.diff(edges[order]), np.cumsum(steps[order])[:-1]
    any_of_them = lengths[senders > 0].sum()
    return float(lengths[senders > 1].sum() / any_of_them) if any_of_them > 0 else 0.0
