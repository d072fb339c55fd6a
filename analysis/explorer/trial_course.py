# SPDX-License-Identifier: Apache-2.0
"""A trial over time, as the explorer's page holds it: jobs, directions of cables, and iterations.

Instants are ms since the trial's first iteration began. Rates are means of windows of one width. Values are rounded to
`TIME_DIGITS` and the like, and unknown values are None.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.reading import data
from analysis.reading.cells import CellId
from analysis.reading.congestion.marks import per_iteration
from analysis.reading.data import HostPlace, PortPlace, filter_rows
from analysis.reading.disturbance import mark_name
from analysis.statistics.cumulative_counter import EMPTY, CumulativeCounter, Floats, Integers, Truths
from roundabout.spec import Topology, TrialSpec
from roundabout.store import Run
from roundabout.store.trial_states import DISTURBANCE, state_of_record

SAMPLING_MS = 10.0
"""Least width of a window: the period at which counters are sampled."""
MAX_WINDOWS, MIN_WINDOWS = 4000, 200
"""Number of windows of a trial: twice the columns of a wide screen, and enough to see phases."""
MAX_VALUES = 2_000_000
"""Limit of a page's windows, summed over trials and series: at most some MB of the page."""
MAX_ITERATIONS = 2000
"""Limit of a job's iterations in a trial; later ones are left out."""
MAX_DIRECTIONS = 96
"""Limit of the directions of cables that have their course on the page; the others have their means."""
TIME_DIGITS, RATE_DIGITS, QUEUE_DIGITS = 3, 3, 1
"""Decimals of ms, of Gbit/s and of kB."""
CNP_COUNTERS = ("rp_cnp_handled", "cnps")
"""Counters of the CNPs that a sender reacts to: the NIC's, or else the lab's reaction point's."""
MISSING = {
    "links": "No load of links: this run has no byte counters of switch ports or hosts.",
    "queue": "No queues: the testbed has none, or cannot sample them.",
    "marks": "No ECN marks: neither switch ports nor NICs counted them.",
    "cnps": "No CNPs: no host has a counter of them.",
}

Values = list[float | None]


class Direction(NamedTuple):
    """A link in one direction."""

    link: str
    towards: str


@dataclass(frozen=True)
class Tables:
    """The counters of the page's trials, and the iterations of all trials with the marks of each."""

    iterations: pa.Table
    sent: Mapping[HostPlace, CumulativeCounter]
    ports: Mapping[PortPlace, CumulativeCounter]
    backlogs: Mapping[PortPlace, tuple[Integers, Integers]]
    marks: Mapping[PortPlace, CumulativeCounter]
    cnps: Mapping[HostPlace, CumulativeCounter]
    marks_by_iteration: Mapping[tuple[str, str], Mapping[int, int | None]]


class _Trial(NamedTuple):
    """A trial of the page, with the edges of its windows."""

    key: str
    spec: TrialSpec
    tables: Tables
    edges_ns: Integers


def read_tables(run: Run, trials: Sequence[str]) -> Tables:
    """Return the counters of these trials."""
    keys = tuple(trials)
    return Tables(
        iterations=data.iterations(run),
        sent=data.counters(run, "tx_bytes", keys),
        ports=data.ports(run, "tx_bytes", keys),
        backlogs=data.backlogs(run, keys),
        marks=data.ports(run, "marks", keys),
        cnps=_read_cnps(run, keys),
        marks_by_iteration=_read_marks(run, keys),
    )


def describe_trial(record: Mapping[str, Any], tables: Tables, windows: int) -> dict[str, Any]:
    """Return a trial, of its record, for the page: at most `windows` windows, with what is missing."""
    key = str(record["trial"])
    spec = TrialSpec.model_validate(record["spec"])
    rows = filter_rows(tables.iterations, trial=key)
    begin_ns, end_ns = min(rows["start_ns"].to_pylist()), max(rows["comm_end_ns"].to_pylist())
    width_ms = window_width_ms((end_ns - begin_ns) / 1e6, windows)
    trial = _Trial(key, spec, tables, window_edges_ns(begin_ns, end_ns, width_ms))
    directions = list(_directions(trial))
    jobs = [_describe_job(trial, job, rows) for job in dict.fromkeys(rows["job"].to_pylist())]
    return {
        **trial_name(record),
        "duration_ms": round((end_ns - begin_ns) / 1e6, TIME_DIGITS),
        "window_ms": width_ms,
        "jobs": jobs,
        "directions": directions,
        "topology": _describe_topology(spec.topology),
        "missing": [words for part, words in MISSING.items() if not _has(part, jobs, directions)],
    }


def trial_name(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that name a trial, with its state."""
    cell = mark_name(CellId.of(record).name, record.get(DISTURBANCE))
    words = (cell, record.get("job"), f"repetition {record['repetition']}")
    return {
        "key": record["trial"],
        "name": ", ".join(filter(None, words)),
        "state": state_of_record(record),
        "reason": record["reason"],
    }


def window_width_ms(duration_ms: float, windows: int) -> float:
    """Return the width of a trial's windows, ms: a multiple of the sampling period, with at most `windows` of them."""
    return SAMPLING_MS * max(int(np.ceil(duration_ms / SAMPLING_MS / windows)), 1)


def window_edges_ns(begin_ns: int, end_ns: int, width_ms: float) -> Integers:
    """Return the edges of windows that cover a trial, ns."""
    count = max(int(np.ceil((end_ns - begin_ns) / (width_ms * 1e6))), 1)
    edges_ns: Integers = begin_ns + np.rint(np.arange(count + 1) * width_ms * 1e6).astype(np.int64)
    return edges_ns


def limit_windows(trials: int, series: int) -> int:
    """Return the number of windows that each of so many trials with so many series may have on a page."""
    return int(np.clip(MAX_VALUES // max(trials * series, 1), MIN_WINDOWS, MAX_WINDOWS))


def count_series(spec: TrialSpec) -> int:
    """Return the number of series of a trial, at most: rates and CNPs by job; load, queue and marks by direction."""
    return 2 * len(spec.jobs) + 3 * min(2 * len(spec.topology.links), MAX_DIRECTIONS)


def _describe_job(trial: _Trial, job: str, rows: pa.Table) -> dict[str, Any]:
    hosts, tables, edges_ns = trial.spec.jobs[job].hosts, trial.tables, trial.edges_ns
    all_rows = filter_rows(rows, job=job)
    own = all_rows.slice(0, MAX_ITERATIONS)
    instants = {name: own[name].to_numpy() for name in ("start_ns", "compute_end_ns", "comm_end_ns")}
    counters = [tables.cnps.get(HostPlace(trial.key, host)) for host in hosts]
    known = [each for each in counters if each is not None]
    marks = tables.marks_by_iteration.get((trial.key, job))
    numbers = own["iteration"].to_pylist()
    first = tables.sent.get(HostPlace(trial.key, trial.spec.jobs[job].workers[0]), EMPTY)
    return {
        "name": job,
        "hosts": list(hosts),
        "hops": [[hop.link.name, hop.receiver] for hop in trial.spec.hops(job)],
        "count": len(all_rows),
        "iterations": numbers,
        **{name.removesuffix("_ns"): _since(edges_ns[0], at_ns) for name, at_ns in instants.items()},
        "iteration_ms": _rounded(own["iteration_ms"].to_numpy(), TIME_DIGITS),
        "marks": marks and [marks.get(number) for number in numbers],
        "cnps": _gains(known, instants["start_ns"], instants["comm_end_ns"]) if known else None,
        "gbps": _rates(first, edges_ns),
        "cnps_per_window": _sums(known, edges_ns) if known else None,
    }


def _directions(trial: _Trial) -> Iterator[dict[str, Any]]:
    """Yield each direction of a link whose bytes were counted, the busiest first."""
    tables, edges_ns = trial.tables, trial.edges_ns
    rates = {link.name: link.line_rate_gbps for link in trial.spec.topology.links}
    counters = dict(_counters_of_directions(trial))
    means = {each: _mean_gbps(counter, edges_ns) for each, counter in counters.items()}
    busiest = sorted(means, key=lambda each: -(means[each] or 0.0) / rates[each.link])
    for place, each in enumerate(busiest):
        port = PortPlace(trial.key, *each)
        has_course = place < MAX_DIRECTIONS and bool(means[each])
        yield {
            **each._asdict(),
            "line_rate_gbps": rates[each.link],
            "mean_gbps": means[each],
            "gbps": _rates(counters[each], edges_ns) if has_course else None,
            "backlog_kb": _backlogs(tables.backlogs.get(port), edges_ns) if has_course else None,
            "marks": _sums([tables.marks[port]], edges_ns) if has_course and port in tables.marks else None,
        }


def _counters_of_directions(trial: _Trial) -> Iterator[tuple[Direction, CumulativeCounter]]:
    """Yield the counters of sent bytes of switch ports, and of hosts with one link."""
    topology = trial.spec.topology
    names = {link.name for link in topology.links}
    yield from (
        (Direction(port.link, port.towards), counter)
        for port, counter in trial.tables.ports.items()
        if port.trial == trial.key and port.link in names
    )
    for host in topology.hosts:
        own = [link for link in topology.links if host in link.ends]
        counter = trial.tables.sent.get(HostPlace(trial.key, host))
        if counter is not None and len(own) == 1:
            one, other = own[0].ends
            yield Direction(own[0].name, other if one == host else one), counter


def _describe_topology(topology: Topology) -> dict[str, Any]:
    return {
        "name": topology.name,
        "hosts": list(topology.hosts),
        "switches": list(topology.switches),
        "links": [[link.name, *link.ends, link.line_rate_gbps] for link in topology.links],
    }


def _has(part: str, jobs: Iterable[Mapping[str, Any]], directions: Iterable[Mapping[str, Any]]) -> bool:
    """Return True if a part of the page has data."""
    if part == "links":
        return any(True for _ in directions)
    if part == "queue":
        return any(each["backlog_kb"] is not None for each in directions)
    return any(job[part] is not None for job in jobs)


def _read_cnps(run: Run, trials: tuple[str, ...]) -> dict[HostPlace, CumulativeCounter]:
    """Return each host's first counter of CNPs, in the order of `CNP_COUNTERS`."""
    found: dict[HostPlace, CumulativeCounter] = {}
    read = data.device_counters(run, "|".join(CNP_COUNTERS), trials)
    for name in CNP_COUNTERS:
        for place, counter in read.items():
            if place.counter == name:
                found.setdefault(HostPlace(place.trial, place.host), counter)
    return found


def _read_marks(run: Run, trials: tuple[str, ...]) -> dict[tuple[str, str], dict[int, int | None]]:
    """Return the ECN marks of each iteration, by trial and job; None if unknown."""
    counted = per_iteration(run)
    found: dict[tuple[str, str], dict[int, int | None]] = {}
    if counted is None:
        return found
    for row in counted.iterations.to_pylist():
        if row["trial"] in trials:
            of_job = found.setdefault((row["trial"], row["job"]), {})
            before, count = of_job.get(row["iteration"], 0), row["count"]
            of_job[row["iteration"]] = None if before is None or count is None else before + count
    return found


def _since(begin_ns: int, at_ns: Integers) -> Values:
    return _rounded((at_ns - begin_ns) / 1e6, TIME_DIGITS)


def _rates(counter: CumulativeCounter, edges_ns: Integers) -> Values:
    return _rounded(counter.rate(edges_ns) * 8 / 1e9, RATE_DIGITS)


def _mean_gbps(counter: CumulativeCounter, edges_ns: Integers) -> float | None:
    """Return the mean rate over the part of the trial in which the counter was sampled."""
    if len(counter.at_ns) < 2:
        return None
    begin_ns, end_ns = max(edges_ns[0], counter.at_ns[0]), min(edges_ns[-1], counter.at_ns[-1])
    if begin_ns >= end_ns:
        return None
    return _rounded(counter.rate(np.array([begin_ns, end_ns])) * 8 / 1e9, RATE_DIGITS)[0]


def _backlogs(samples: tuple[Integers, Integers] | None, edges_ns: Integers) -> Values | None:
    """Return the most bytes that samples of each window show, in kB."""
    if samples is None:
        return None
    at_ns, waiting = samples
    windows = np.searchsorted(edges_ns, at_ns, side="right") - 1
    most: Floats = np.full(len(edges_ns) - 1, -1.0)
    inside = (windows >= 0) & (windows < len(most))
    np.maximum.at(most, windows[inside], waiting[inside])
    return _rounded(np.where(most < 0, np.nan, most / 1e3), QUEUE_DIGITS)


def _sums(counters: Sequence[CumulativeCounter], edges_ns: Integers) -> Values:
    """Return the gain of several counters together in each window."""
    gains = [each.gains_between(edges_ns) for each in counters]
    total = np.sum([each.counts for each in gains], axis=0)
    known = np.all([each.known for each in gains], axis=0)
    return [int(count) if is_known else None for count, is_known in zip(total, known, strict=True)]


def _gains(counters: Sequence[CumulativeCounter], begin_ns: Integers, end_ns: Integers) -> Values:
    """Return the gain of several counters together in each span, interpolated between samples."""
    total = np.sum([each.value_at(end_ns) - each.value_at(begin_ns) for each in counters], axis=0)
    known = np.all([_covers(each, begin_ns, end_ns) for each in counters], axis=0)
    return [int(count) if is_known else None for count, is_known in zip(total, known, strict=True)]


def _covers(counter: CumulativeCounter, begin_ns: Integers, end_ns: Integers) -> Truths:
    """Return True for each span that lies within the samples of a counter without unknown gains."""
    if len(counter.at_ns) < 2 or not counter.known.all():
        return np.zeros(len(begin_ns), np.bool_)
    return np.asarray((counter.at_ns[0] <= begin_ns) & (end_ns <= counter.at_ns[-1]))


def _rounded(values: Floats, digits: int) -> Values:
    return [float(value) if np.isfinite(value) else None for value in np.round(values, digits)]
