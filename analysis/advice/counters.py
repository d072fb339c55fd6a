# SPDX-License-Identifier: Apache-2.0
"""Byte counters of hosts over time, from a CSV or Parquet table or from a Prometheus server's answer."""

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from analysis.advice.errors import AdviceError
from analysis.reading.counted import Floats, Integers
from analysis.statistics.folding import Sent
from roundabout.spec import json_source
from roundabout.spec.frames import HEADER_BYTES
from roundabout.spec.source import decode
from roundabout.store.rates import Increments, increments

NS = {"controller_ns": 1, "at_ns": 1, "at_ms": 10**6, "at_s": 10**9}
"""Columns that say when, and their unit in ns; the first is what the table `counters` of a run has."""
HOSTS = ("host", "instance", "node")
GAP = 5.0
"""Times the usual distance of samples: what is longer is a gap."""
MOST_MISSING = 0.25
"""Of the time: where gaps and resets take more of it, nothing is read from the counter."""
FASTER = 4.0
"""A host's interface is at most so many times as fast as the link: tells a counter that wrapped from one reset."""
TIMEOUT_S = 30


@dataclass(frozen=True)
class Counter:
    """A host's samples: bytes sent until `at_ns` (both of length n, as read), and packets where those are counted.

    A value that could not be read is nan.
    """

    at_ns: Integers
    bytes: Floats
    packets: Floats | None = None

    def sent(self, capacity_gbps: float) -> Sent:
        """What it gained since its first sample, without headers where packets are counted.

        A counter of 32 bits is one that falls and never goes beyond that. What was lost where it was reset, or could
        not be read, counts as 0: the iteration in which that was then differs from the others and is left out.

        Raises AdviceError where too much of it is missing.
        """
        bytes_ = self._gained(self.bytes, FASTER * capacity_gbps / 8 * 1e9)
        missing = self._missing(bytes_)
        if missing > MOST_MISSING:
            found = f"{100 * missing:.0f} % of the time in gaps and resets"
            raise AdviceError(f"found {found}, expected {100 * MOST_MISSING:.0f} % at most")
        payload = np.nan_to_num(bytes_.gained)
        if self.packets is not None:
            headers = HEADER_BYTES * np.nan_to_num(self._gained(self.packets, FASTER * capacity_gbps / 8 * 1e9).gained)
            payload = np.maximum(payload - headers, 0)
        return Sent(self.at_ns, np.concatenate([[0], np.cumsum(payload)]).astype(np.int64))

    def _gained(self, values: Floats, most_per_s: float) -> Increments:
        fell = (np.diff(values[~np.isnan(values)]) < 0).any()
        narrow = fell and np.nanmax(values, initial=0) < 2**32
        return increments(self.at_ns, values, 32 if narrow else 64, most_per_s=most_per_s)

    def _missing(self, gained: Increments) -> float:
        steps = np.diff(self.at_ns)
        if len(steps) == 0:
            return 1.0
        lost = ~gained.known | (steps > GAP * np.median(steps))
        return float(steps[lost].sum() / steps.sum())


def read(source: str) -> dict[str, Counter]:
    """The counters of each host in a `.csv`, `.parquet` or `.json` file, or that a Prometheus server answers with.

    Raises AdviceError.
    """
    if source.startswith(("http://", "https://")):
        return _of_answer(_fetched(source), source)
    path = Path(source)
    readers = {".csv": pyarrow.csv.read_csv, ".parquet": pq.read_table}
    try:
        if path.suffix == ".json":
            return _of_answer(path.read_bytes(), source)
        if path.suffix in readers:
            return of_table(readers[path.suffix](path), source)
    except (OSError, pa.ArrowException) as error:
        raise AdviceError(f"{source}: cannot be read: {error}") from error
    raise AdviceError(f"{source}: found a name that ends in '{path.suffix}', expected .csv, .parquet or .json")


def _fetched(url: str) -> bytes:
    """What a server answers; a query may be written as Prometheus has it, with braces and quotes."""
    address, mark, query = url.partition("?")
    written = urllib.parse.quote(query, safe="%&=+:,~()")
    try:
        with urllib.request.urlopen(f"{address}{mark}{written}", timeout=TIMEOUT_S) as answer:  # noqa: S310 - http or https, as `read` saw
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as error:
        return error.read()  # Prometheus says there what is wrong with the query
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise AdviceError(f"{url}: no answer: {error}") from error


def _of_answer(body: bytes, source: str) -> dict[str, Counter]:
    """A Prometheus server's answer: series of samples, each of one host.

    Source: Prometheus' HTTP API, /api/v1/query and /api/v1/query_range, `resultType` matrix.
    """
    answer = json_source.parse(decode(body, source), source).root
    try:
        if answer["status"] != "success":
            raise AdviceError(f"{source}: found error '{answer.get('error')}', expected samples")
        kind, series = answer["data"]["resultType"], answer["data"]["result"]
        if kind != "matrix":
            hint = "ask query_range, or query with a range: counter[5m]"
            raise AdviceError(f"{source}: found a {kind}, expected a matrix of samples", hint)
        pairs = [(_host(each["metric"], source), np.array(each["values"], dtype=np.float64)) for each in series]
    except (ValueError, KeyError, TypeError) as error:
        raise AdviceError(f"{source}: found no answer of a Prometheus server, expected one ({error!r})") from error
    hosts = [host for host, _ in pairs]
    if twice := {host for host in hosts if hosts.count(host) > 1}:
        expected = "one: choose a device in the query"
        raise AdviceError(f"{source}: found several series of host {min(twice)}, expected {expected}")
    return {host: _counter(values[:, 0], 10**9, values[:, 1], None, f"{source}, {host}") for host, values in pairs}


def _host(labels: Mapping[str, str], source: str) -> str:
    for name in HOSTS:
        if name in labels:
            return labels[name].rpartition(":")[0] or labels[name]
    raise AdviceError(f"{source}: found labels {', '.join(labels) or 'none'}, expected one of {', '.join(HOSTS)}")


def of_table(table: pa.Table, source: str) -> dict[str, Counter]:
    """The counters of each host in a table. Raises AdviceError."""
    names = table.column_names
    when, host, count = (_column(names, known, source) for known in (tuple(NS), HOSTS, ("tx_bytes", "bytes")))
    packets = "tx_packets" if "tx_packets" in names else None
    found = {}
    for name in pc.unique(table[host]).to_pylist():
        rows = table.filter(pc.equal(table[host], name))
        devices = pc.unique(rows["interface"]).to_pylist() if "interface" in names else []
        if len(devices) > 1:
            what = f"interfaces {', '.join(map(str, devices))} of host {name}"
            raise AdviceError(f"{source}: found {what}, expected one")
        columns = [_numbers(rows, column, source) for column in (when, count, *([packets] if packets else []))]
        found[str(name)] = _counter(columns[0], NS[when], columns[1], columns[2] if packets else None, source)
    return found


def _column(names: list[str], known: tuple[str, ...], source: str) -> str:
    for name in known:
        if name in names:
            return name
    raise AdviceError(f"{source}: found columns {', '.join(names)}, expected one called {' or '.join(known)}")


def _numbers(rows: pa.Table, column: str, source: str) -> Any:
    kind = rows[column].type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise AdviceError(f"{source}: column {column}: found {kind}, expected numbers")
    return rows[column].to_numpy()


def _counter(at: Any, unit_ns: int, counts: Any, packets: Any, source: str) -> Counter:
    """Samples in the order of time, one an instant."""
    if np.isnan(at.astype(np.float64)).any():
        raise AdviceError(f"{source}: found a sample without a time, expected one for each")
    whole = at.astype(np.int64) if unit_ns == 1 else np.rint(at * unit_ns).astype(np.int64)
    at_ns, order = np.unique(whole, return_index=True)
    return Counter(
        at_ns,
        counts[order].astype(np.float64),
        None if packets is None else packets[order].astype(np.float64),
    )
