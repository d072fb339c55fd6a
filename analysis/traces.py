# SPDX-License-Identifier: Apache-2.0
"""One trial over time: when each job communicates, how fast it sends, what the bottleneck's queue does."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.bandwidth import Floats, rate_gbps
from analysis.measures import Measured, communication, rows_of
from roundabout.spec import Hop, Link
from roundabout.store import Run

BIN_MS = 10.0
"""Width of a bin: the period at which counters are sampled."""


@dataclass(frozen=True)
class Trace:
    """A trial, in ms from the instant at which its first job started; arrays per bin have one value per `BIN_MS`.

    `spans` are begin and end of communication per job and iteration, shape (iterations, 2). `rates` are Gbit/s on the
    wire, sent by a job's first worker: all workers of a ring send at the same pace. `backlog_bytes` and `marks` (per
    bin) are those of the bottleneck, in the direction in which that worker sends; None where they were not measured.
    """

    cell: Measured
    trial: str
    edges_ms: Floats
    spans: dict[str, Floats]
    rates: dict[str, Floats]
    backlog_bytes: Floats | None
    marks: Floats | None


def bottleneck(cell: Measured) -> Link | None:
    """The link that the topology names as the one that jobs share."""
    return next((link for link in cell.spec.topology.links if link.bottleneck), None)


def trace(run: Run, cell: Measured, trial: str) -> Trace:
    """The course of one trial."""
    iterations = rows_of(run.table("iterations"), trial=trial)
    start_ns = min(iterations["start_ns"].to_pylist())
    jobs = [job for job in cell.spec.jobs if job in cell.times]
    spans = {job: (np.array(communication(iterations, trial, job)) - start_ns) / 1e6 for job in jobs}
    edges_ms = np.arange(0.0, max(each[-1, 1] for each in spans.values()) + BIN_MS, BIN_MS)
    edges_ns = start_ns + edges_ms * 1e6
    counters = rows_of(run.table("counters"), trial=trial)
    rates = {}
    for job in jobs:
        rows = rows_of(counters, host=cell.spec.jobs[job].workers[0]).sort_by("controller_ns")
        rates[job] = rate_gbps(rows["controller_ns"].to_numpy(), rows["tx_bytes"].to_numpy(), edges_ns)
    backlog, marks = _queue(rows_of(run.table("queue"), trial=trial), _bottleneck_hop(cell), edges_ns)
    return Trace(cell, trial, edges_ms, spans, rates, backlog, marks)


def _bottleneck_hop(cell: Measured) -> Hop | None:
    """The bottleneck in the direction in which the first job's first worker sends across it."""
    link = bottleneck(cell)
    first = next(iter(cell.spec.jobs.values()))
    hops = cell.spec.topology.path(*first.ring[0])
    return next((hop for hop in hops if link is not None and hop.link.name == link.name), None)


def _queue(rows: pa.Table, hop: Hop | None, edges_ns: Floats) -> tuple[Floats | None, Floats | None]:
    """Backlog (bytes, at the bins' beginnings) and marks per bin of the port that `hop` leaves by."""
    if hop is None:
        return None, None
    port = rows_of(rows, link=hop.link.name, towards=hop.receiver).sort_by("controller_ns")
    if port.num_rows == 0:
        return None, None
    at_ns = port["controller_ns"].to_numpy()
    backlog = np.interp(edges_ns[:-1], at_ns, port["backlog_bytes"].to_numpy())
    if port["marks"].null_count:
        return backlog, None
    return backlog, np.diff(np.interp(edges_ns, at_ns, port["marks"].to_numpy()))


def per_iteration(trace: Trace, values: Floats, job: str) -> Floats:
    """Sum of a trace's bins over each iteration of `job`, from one end of communication to the next."""
    ends = np.searchsorted(trace.edges_ms, trace.spans[job][:, 1])
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.diff(total[np.minimum(ends, len(values))], prepend=0.0)


def at_once(trace: Trace, begin_ms: float, end_ms: float) -> float:
    """Of the time in which any job communicates between `begin_ms` and `end_ms`, the share in which several do."""
    spans = np.concatenate([np.clip(each, begin_ms, end_ms) for each in trace.spans.values()])
    edges, steps = spans.T.ravel(), np.repeat([1, -1], len(spans))
    order = np.argsort(edges, kind="stable")
    lengths, senders = np.diff(edges[order]), np.cumsum(steps[order])[:-1]
    return float(lengths[senders > 1].sum() / lengths[senders > 0].sum())
