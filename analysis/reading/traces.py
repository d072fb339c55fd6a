# SPDX-License-Identifier: Apache-2.0
"""Trials over time: communication of each job, its rate, and the bottleneck's queue."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.reading.cells import CellTrials, communication
from analysis.reading.data import HostPlace, PortPlace, backlogs, counters, filter_rows, iterations, sent_payload
from analysis.reading.phase_overlap import select_jobs
from analysis.statistics.cumulative_counter import EMPTY, CumulativeCounter, Floats, Integers
from roundabout.spec import Link
from roundabout.spec.routing import Flow
from roundabout.store import Run

BIN_MS = 10.0
"""Width of a bin: the period at which counters are sampled."""


@dataclass(frozen=True)
class TrialTrace:
    """A trial over time, in ms from the start of its first job. Arrays by bin have one value for each `BIN_MS`.

    `spans` holds begin and end of communication by job, shape (iterations, 2). `rates` are those of each job's first
    worker on the wire, Gbit/s, because all workers of a ring send at the same pace. `backlog_bytes` is the link's
    backlog at the bins' begins, in the first job's direction; None if it was not measured. Jobs are those that share
    the link. `overhead` is what counters count for each byte of payload: more than 1 where they count headers.
    """

    cell: CellTrials
    link: Link
    trial: str
    edges_ms: Floats
    spans: dict[str, Floats]
    rates: dict[str, Floats]
    backlog_bytes: Floats | None
    overhead: float

    @property
    def has_course(self) -> bool:
        """Return True if there are two bins at least, between which lines can be drawn."""
        return len(self.edges_ms) > 2

    @property
    def name(self) -> str:
        """Return the cell's name in its group, with the link's if jobs of the cell share several links."""
        several = len(self.cell.sharing_jobs) > 1
        return " \u00b7 ".join(filter(None, (self.cell.name_in_group, self.link.name if several else "")))

    @property
    def capacity_gbps(self) -> float:
        """Return the largest rate at which the link carries data, Gbit/s, as the hosts' counters count it."""
        return self.link.payload_rate_gbps * self.overhead

    def describe_capacity(self) -> str:
        """Return the label of a line at `capacity_gbps`."""
        headers = f" of payload, {self.capacity_gbps:.3g} with headers" if self.overhead > 1 else ""
        return f"{self.link.name} carries {self.link.payload_rate_gbps:g}{headers}"


def read_traces(run: Run, cells: Sequence[CellTrials]) -> list[list[TrialTrace]]:
    """Return the traces of each cell's trials for each link that jobs share, or for all jobs if they share none."""
    tables = _Tables(iterations(run), counters(run, "tx_bytes"), backlogs(run), sent_payload(run))
    return [
        [_trace(cell, link, jobs, trial, tables) for trial in cell.trials]
        for cell in cells
        for link, jobs in _links(cell)
    ]


class _Tables(NamedTuple):
    """The tables of all trials: iterations, hosts' sent bytes, ports' backlogs, and hosts' sent payload."""

    iterations: pa.Table
    sent: Mapping[HostPlace, CumulativeCounter]
    backlogs: Mapping[PortPlace, tuple[Integers, Integers]]
    payload: Mapping[HostPlace, int]


def _links(cell: CellTrials) -> list[tuple[Link, Sequence[str]]]:
    """Return the links that jobs share, each with these jobs; if there is none, the bottleneck with all jobs."""
    topology = cell.spec.topology
    if not (sharing := cell.sharing_jobs):
        return [(topology.bottleneck, cell.jobs)]
    return [(link, sharing[link.name]) for link in topology.links if link.name in sharing]


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


def _trace(cell: CellTrials, link: Link, jobs: Sequence[str], trial: str, tables: _Tables) -> TrialTrace:
    start_ns, of_all = _communicating(tables.iterations, cell, trial)
    spans = select_jobs(of_all, jobs)
    edges_ms = np.arange(0.0, max(each[-1, 1] for each in spans.values()) + BIN_MS, BIN_MS)
    edges_ns = start_ns + (edges_ms * 1e6).astype(np.int64)
    firsts = {job: HostPlace(trial, cell.spec.jobs[job].workers[0]) for job in spans}
    rates = {job: tables.sent.get(place, EMPTY).rate(edges_ns) * 8 / 1e9 for job, place in firsts.items()}
    port = _port(cell, link, jobs[0], trial)
    samples = tables.backlogs.get(port) if port is not None else None
    backlog_bytes = None if samples is None else np.interp(edges_ns[:-1], *samples)
    overhead = _overhead(firsts.values(), tables)
    return TrialTrace(cell, link, trial, edges_ms, spans, rates, backlog_bytes, overhead)


def _overhead(places: Iterable[HostPlace], tables: _Tables) -> float:
    """Return the bytes that counters count for each byte of payload, by the host with the least; 1 if unknown.

    Other traffic of a host, such as cross traffic, would count as headers, so the least is nearest.
    """
    known = [place for place in places if place in tables.sent and tables.payload.get(place)]
    return max(min((tables.sent[each].total_gain / tables.payload[each] for each in known), default=1.0), 1.0)


def _port(cell: CellTrials, link: Link, job: str, trial: str) -> PortPlace | None:
    """Return the link in the direction in which the job's first worker sends across it."""
    topology = cell.spec.topology
    hops = [hop for pair in cell.spec.jobs[job].pairs[:1] for hop in topology.link_shares(Flow(*pair))]
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
