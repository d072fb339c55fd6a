# SPDX-License-Identifier: Apache-2.0
"""Byte counters of hosts from a CSV or Parquet table."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from analysis.advice.counters import HOSTS, Counters, host_column, make_counter
from analysis.advice.errors import AdviceError
from roundabout.spec.errors import list_choices, quote_value
from roundabout.spec.reader.yaml_source import open_without_waiting

NS = {"controller_ns": 1, "at_ns": 1, "at_ms": 10**6, "at_s": 10**9}
"""Names of time columns, with their unit in ns; the table `counters` of a run has the first one."""
BYTES = ("tx_bytes", "bytes")
PACKETS = "tx_packets"
INTERFACE = "interface"
TEXT = dict.fromkeys((*HOSTS, INTERFACE), pa.string())
"""Types of the columns that hold names: they stay text, because a host `01` is no number."""
DELIMITERS = (",", ";", "\t")
DECIMAL_COMMA = re.compile(rb'(?:^|[;\t])"?[+-]?\d+,\d+(?:[eE][+-]?\d+)?"?(?=[;\t\r\n]|$)', re.MULTILINE)
"""A field that is a number with a decimal comma, between other separators."""
HEAD_BYTES = 1 << 16


def read_table(path: Path, named: Collection[str]) -> Counters:
    """Return the counters of each host in a file. Raises AdviceError."""
    try:
        with open(path, "rb", opener=open_without_waiting) as file:
            table = _read_csv(file) if path.suffix.lower() == ".csv" else pq.ParquetFile(file).read()
        return parse_table(table, str(path), named)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise AdviceError(f"{path}: cannot be read: {why}") from error


def _read_csv(file: BinaryIO) -> pa.Table:
    """Return a table with the separator of its heading; numbers may have a decimal comma if that is no comma."""
    heading, _, rows = file.read(HEAD_BYTES).partition(b"\n")
    file.seek(0)
    delimiter = max(DELIMITERS, key=lambda each: heading.count(each.encode()))
    return pacsv.read_csv(
        file,
        read_options=pacsv.ReadOptions(use_threads=False),  # so that complaints name a row
        parse_options=pacsv.ParseOptions(delimiter=delimiter),
        convert_options=pacsv.ConvertOptions(
            column_types=TEXT, decimal_point="," if delimiter != "," and DECIMAL_COMMA.search(rows) else "."
        ),
    )


def parse_table(table: pa.Table, source: str, named: Collection[str] = ()) -> Counters:
    """Return the counters of each host in a table, by the column that names the hosts `named`. Raises AdviceError."""
    names = table.column_names
    when, count = (_column(names, known, source) for known in (tuple(NS), BYTES))
    numbers = [when, count, *([PACKETS] if PACKETS in names else [])]
    texts = [name for name in (*HOSTS, INTERFACE) if name in names]
    for name in (*numbers, *texts):
        if names.count(name) > 1:
            raise AdviceError(f"{source}: found the column {name} twice, expected it once")
    is_timestamp = pa.types.is_timestamp(table[when].type)
    if is_timestamp:
        nanoseconds = table[when].cast(pa.timestamp("ns")).cast(pa.int64())
        table = table.set_column(names.index(when), when, nanoseconds)
    for name in numbers:
        _check_numbers(table[name], f"column {name}", source)
    for name in texts:
        _check_names(table[name], f"column {name}", source)
    columns = {name: [str(each) for each in pc.unique(table[name]).to_pylist()] for name in texts if name in HOSTS}
    host = host_column(columns, named) or _column(names, HOSTS, source)
    hosts = table[host].cast(pa.string())
    found = {}
    for name in pc.unique(hosts).to_pylist():
        if not name:
            raise AdviceError(f"{source}: column {host}: found a row without a host, expected one in each")
        rows = table.filter(pc.equal(hosts, name))
        devices = pc.unique(rows[INTERFACE]).to_pylist() if INTERFACE in texts else []
        if len(devices) > 1:
            raise AdviceError(f"{source}: found interfaces {list_choices(devices)} of host {name}, expected one")
        at, counts, *packets = (rows[each].to_numpy() for each in numbers)
        found[name] = make_counter(
            at, 1 if is_timestamp else NS[when], counts, packets[0] if packets else None, f"{source}: host {name}"
        )
    if not found:
        raise AdviceError(f"{source}: found no row, expected samples of each host")
    unused = [name for name in names if name not in {*numbers, *texts}]
    return Counters(found, (f"columns that are not read: {list_choices(unused)}",) if unused else ())


def _column(names: list[str], known: tuple[str, ...], source: str) -> str:
    for name in known:
        if name in names:
            return name
    raise AdviceError(f"{source}: found columns {list_choices(names)}, expected one called {' or '.join(known)}")


def _check_numbers(column: pa.ChunkedArray, where: str, source: str) -> None:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        odd = ((row, text) for row, text in enumerate(column.to_pylist(), 1) if not _is_number(text))
        row, text = next(odd, (0, ""))
        if row:
            raise AdviceError(f"{source}: row {row}, {where}: found {quote_value(text)}, expected a number")
    raise AdviceError(f"{source}: {where}: found {kind}, expected numbers")


def _check_names(column: pa.ChunkedArray, where: str, source: str) -> None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_name = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_integer, pa.types.is_null)
    if not any(is_kind(kind) for is_kind in is_name):
        raise AdviceError(f"{source}: {where}: found {kind}, expected text")


def _is_number(text: str | None) -> bool:
    """Return True if a cell has a number, or none. Python's float also takes `1_000` and digits of other scripts."""
    try:
        float(text or "nan")
    except ValueError:
        return False
    return text is None or (text.isascii() and "_" not in text)
