# SPDX-License-Identifier: Apache-2.0
"""A run for other programs: its tables as CSV, and a trial as a trace for Perfetto and chrome://tracing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from analysis.reading.cells import CellId
from analysis.reading.data import filter_rows
from roundabout.spec.errors import list_choices
from roundabout.store import Run, StoreError
from roundabout.store.counter_increments import compute_increments
from roundabout.store.files import disk_errors, make_directory, replace_file
from roundabout.store.schemas import TABLES, columns

DICTIONARY = "columns"
LINKS = 1
"""Process id of links in the trace; jobs have the ids after it. Id 0 would be the idle process of a kernel."""


def export_tables(run: Run, folder: Path) -> Iterator[tuple[Path, int]]:
    """Write every table with rows into `folder`/<table>.csv, and the columns' meanings into columns.csv.

    Only valid trials have rows, except that `trials` lists all. Yields each file and its number of rows. Raises
    StoreError.
    """
    make_directory(folder)
    written = []
    for name in TABLES:
        table = run.table(name, valid_only=name != "trials")
        if table.num_rows:
            written.append(name)
            yield _write(folder / f"{name}.csv", table)
    described = [
        {"table": name, "column": each.name, "type": str(each.type), "unit": each.unit, "about": each.about}
        for name in written
        for each in columns(name)
    ]
    yield _write(folder / f"{DICTIONARY}.csv", pa.Table.from_pylist(described))


def export_trace(run: Run, which: str) -> str:
    """Return a committed trial as JSON in Chrome's trace format; `which` is a prefix of its key, or `first`.

    Each job is a process and each worker a thread, whose iterations contain computing and communication. Link rates and
    backlogs are counters. Times are whole us from the first start, so that nesting is exact in any reader's arithmetic.
    Format: "Trace Event Format", Google 2016. Raises StoreError if there is no such trial.
    """
    record = _trial(run, which)
    iterations, queue = (
        filter_rows(run.table(name, valid_only=False), trial=record["trial"]) for name in ("iterations", "queue")
    )
    starts = iterations["start_ns"].to_pylist()
    begin_ns = min(starts, default=0)
    events = [*_worker_events(iterations, list(record["spec"]["jobs"]), begin_ns), *_port_events(queue, begin_ns)]
    about = {"run": run.id, "trial": record["trial"], "is": _described(record)}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about})


def _write(path: Path, table: pa.Table) -> tuple[Path, int]:
    plain = [pa.string() if pa.types.is_dictionary(field.type) else field.type for field in table.schema]
    table = table.cast(pa.schema([pa.field(*pair) for pair in zip(table.schema.names, plain, strict=True)]))
    with disk_errors(path), replace_file(path) as file:
        csv.write_csv(table, file)
    return path, table.num_rows


def _trial(run: Run, which: str) -> dict[str, Any]:
    records = run.trials()
    found = records[:1] if which == "first" else [each for each in records if each["trial"].startswith(which)]
    if len(found) != 1:
        known = list_choices(f"{each['trial']} ({_described(each)})" for each in records) or "none"
        raise StoreError(f"found {len(found) or 'no'} trials '{which}' in {run.path}", f"expected one of {known}")
    return found[0]


def _described(record: dict[str, Any]) -> str:
    return f"{CellId.of(record).name}, repetition {record['repetition']}"


def _worker_events(iterations: pa.Table, jobs: list[str], begin_ns: int) -> Iterator[dict[str, Any]]:
    """Yield jobs and workers by name, and each worker's activities."""
    processes = {job: number for number, job in enumerate(jobs, start=LINKS + 1)}
    for job, process in processes.items():
        yield _metadata_event(job, pid=process)
    rows = iterations.to_pylist()
    hosts = {(row["job"], row["rank"]): row["host"] for row in rows}
    threads = {worker: number for number, worker in enumerate(hosts, start=1)}
    for (job, rank), host in hosts.items():
        yield _metadata_event(f"worker {rank} on {host}", pid=processes[job], tid=threads[job, rank])
    for row in rows:
        job, rank = row["job"], row["rank"]
        place = {"ph": "X", "cat": "job", "pid": processes[job], "tid": threads[job, rank]}
        spans = {
            f"iteration {row['iteration']}": ("start_ns", "comm_end_ns"),
            "compute": ("start_ns", "compute_end_ns"),
            "communicate": ("compute_end_ns", "comm_end_ns"),
        }
        for name, (start, end) in spans.items():
            start_us, end_us = (_us(row[each], begin_ns) for each in (start, end))
            yield place | {"name": name, "ts": start_us, "dur": end_us - start_us}


def _port_events(queue: pa.Table, begin_ns: int) -> Iterator[dict[str, Any]]:
    """Yield each switch port's rate until the next sample, and its backlog; unknown values are left out."""
    yield _metadata_event("links", pid=LINKS)
    queue = queue.filter(pc.greater_equal(queue["controller_ns"], begin_ns))  # readers do not support times below 0
    for link, towards in dict.fromkeys(zip(queue["link"].to_pylist(), queue["towards"].to_pylist(), strict=True)):
        port = filter_rows(queue, link=link, towards=towards).sort_by("controller_ns")
        at_ns = port["controller_ns"].to_numpy()
        gained = compute_increments(at_ns, port["tx_bytes"].to_numpy(), 64).gained
        gbps = gained * 8 / np.maximum(np.diff(at_ns), 1)
        waiting = port["backlog_bytes"].to_pylist()[:-1]
        for at, rate, backlog in zip(at_ns[:-1], gbps, waiting, strict=True):
            counted = {"Gbit/s": float(rate), "waiting, MB": None if backlog is None else backlog / 1e6}
            for name, value in counted.items():
                if value is not None and np.isfinite(value):
                    yield {
                        "ph": "C",
                        "cat": "link",
                        "pid": LINKS,
                        "name": f"{link} towards {towards}, {name}",
                        "ts": _us(int(at), begin_ns),
                        "args": {name: round(value, 4)},
                    }


def _us(at_ns: int, begin_ns: int) -> int:
    return (at_ns - begin_ns) // 1000


def _metadata_event(called: str, **place: int) -> dict[str, Any]:
    """Return the name of a thread, or of a process."""
    return {"ph": "M", "name": "thread_name" if "tid" in place else "process_name", **place, "args": {"name": called}}
