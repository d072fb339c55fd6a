# SPDX-License-Identifier: Apache-2.0
"""Functions that read a run's measurements; DuckDB reads the run's tables in place.

Only valid trials count. Bytes are the paper's, instants are on the run's clock. Data that a run lacks, because it is
older or could not measure them, are missing from the answer. Marks per iteration are in marks.py.
"""

import re
from collections.abc import Iterator
from functools import cache, reduce
from operator import and_
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analysis.reading.cached_run import cached_per_run
from analysis.statistics.cumulative_counter import CumulativeCounter, Floats, Integers
from roundabout.store import Run, StoreError
from roundabout.store.counter_increments import compute_increments
from roundabout.store.files import LOST_MESSAGE
from roundabout.store.schemas import TABLES, schema

Series = dict[tuple[str, str], Floats]
"""One figure for each iteration, by trial and job."""


class HostPlace(NamedTuple):
    """A host in one trial."""

    trial: str
    host: str


class DevicePlace(NamedTuple):
    """A counter of a host's device in one trial."""

    trial: str
    host: str
    device: str
    counter: str


class PortPlace(NamedTuple):
    """A switch port in one trial: the link that it feeds, and the host or switch at the link's other end."""

    trial: str
    link: str
    towards: str


def query(run: Run, sql: str, **values: Any) -> pa.Table:
    """Return DuckDB's answer to `sql`, in which $name stands for the value called `name`.

    Tables have the names of docs/reference/store.md. Raises StoreError if a table cannot be read.
    """
    with _database().cursor() as connection:
        for name in TABLES.keys() & set(re.findall(r"\w+", sql)):  # opening hundreds of files takes its time
            if name == "trials" or run.is_outdated(name):
                connection.register(name, run.table(name))
            else:  # under the schema of today: columns that an old run lacks are null
                paths = [str(path) for path in run.paths(name)]
                connection.register(name, ds.dataset(paths, schema=schema(name), format="parquet"))
        try:
            return connection.sql(sql, params=values).to_arrow_table()
        except (duckdb.InvalidInputException, duckdb.IOException) as error:
            raise StoreError(f"cannot read the tables of {run.path}: {error}", LOST_MESSAGE) from error


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return this process's database, because opening one takes 20 ms of CPU time."""
    return duckdb.connect()


def by_iteration(run: Run, figure: str) -> Series:
    """Return `figure`, an SQL aggregate over an iteration's workers, for each iteration in order.

    Iterations and jobs for which the figure is null are left out.
    """
    rows = query(
        run,
        f"""
        select trial, job, list(figure order by iteration) as figures from (
          select trial, job, iteration, {figure} as figure from iterations group by all
        ) where figure is not null group by all
        """,  # noqa: S608 - our own words
    )
    return {(row["trial"], row["job"]): np.array(row["figures"]) for row in rows.to_pylist()}


@cached_per_run
def iterations(run: Run) -> pa.Table:
    """Return a table with one row for each iteration of a job, its workers taken together.

    Rows are in the order of trials, jobs and iterations.

    Columns: trial, variant, levels, repetition, job, iteration (from 0); start_ns and compute_end_ns, the first
    worker's; comm_end_ns, the last one's; iteration_ms, the slowest worker's, from its own start to its own end, so
    that no two clocks are compared; offset_bound_ns.
    """
    return query(
        run,
        """
        select trial, variant, levels, repetition, job, iteration, min(start_ns) as start_ns,
               min(compute_end_ns) as compute_end_ns, max(comm_end_ns) as comm_end_ns,
               max(iteration_ms) as iteration_ms, max(offset_bound_ns) as offset_bound_ns
        from iterations group by all order by trial, job, iteration
        """,
    )


@cached_per_run
def counters(run: Run, counter: str, trials: tuple[str, ...] | None = None) -> dict[HostPlace, CumulativeCounter]:
    """Return a cumulative column of the table `counters`, such as `tx_bytes`, for each host, over all its NICs.

    With `trials`, only those trials are read.
    """
    found = _samples(run, "counters", counter, HostPlace._fields, trials)
    return {HostPlace(row["trial"], row["host"]): counter_of_row(row) for row in found}


@cached_per_run
def sent_payload(run: Run) -> dict[HostPlace, int]:
    """Return the payload bytes that a host's workers sent in a trial; hosts with an unknown iteration are left out."""
    rows = query(
        run,
        """
        select trial, host, sum(sent_bytes)::bigint as sent from iterations
        group by all having count(*) = count(sent_bytes) order by all
        """,
    )
    return {HostPlace(row["trial"], row["host"]): row["sent"] for row in rows.to_pylist()}


@cached_per_run
def ports(run: Run, counter: str, trials: tuple[str, ...] | None = None) -> dict[PortPlace, CumulativeCounter]:
    """Return a cumulative column of the table `queue` (`tx_bytes`, `drops` or `marks`) for each switch port.

    With `trials`, only those trials are read: all ports of hundreds of trials take minutes.
    """
    found = _samples(run, "queue", counter, PortPlace._fields, trials)
    return {PortPlace(row["trial"], row["link"], row["towards"]): counter_of_row(row) for row in found}


def device_counters(
    run: Run, counter: str, trials: tuple[str, ...] | None = None
) -> dict[DevicePlace, CumulativeCounter]:
    """Return the counters of the table `device_counters` whose whole names match the regular expression `counter`.

    With `trials`, only those trials are read.
    """
    rows = query(
        run,
        f"""
        select trial, host, device, counter, max(offset_bound_ns) as bound_ns, any_value(width_bits) as width_bits,
               list(controller_ns order by controller_ns) as at_ns, list(value order by controller_ns) as counts
        from device_counters where regexp_full_match(counter, $counter) {_among(trials)}
        group by trial, host, device, counter order by all
        """,  # noqa: S608 - our own words
        counter=counter,
    )
    return {
        DevicePlace(*(row[name] for name in DevicePlace._fields)): counter_of_row(row) for row in rows_with_arrays(rows)
    }


@cached_per_run
def backlogs(run: Run, trials: tuple[str, ...] | None = None) -> dict[PortPlace, tuple[Integers, Integers]]:
    """Return the backlog of each switch port's queue: instants in ns, and bytes. With `trials`, only of those."""
    rows = query(
        run,
        f"""
        select trial, link, towards, list(controller_ns order by controller_ns) as at_ns,
               list(backlog_bytes order by controller_ns) as backlog_bytes
        from queue where backlog_bytes is not null {_among(trials)} group by all order by trial, link, towards
        """,  # noqa: S608 - our own words
    )
    return {
        PortPlace(row["trial"], row["link"], row["towards"]): (row["at_ns"], row["backlog_bytes"])
        for row in rows_with_arrays(rows)
    }


def rows_with_arrays(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of `table` with lists of integers as numpy arrays; an array with nulls has type object."""
    columns = table.combine_chunks()
    for place in range(table.num_rows):
        yield {name: _value(columns[name][place]) for name in columns.column_names}


def counter_of_row(row: dict[str, Any]) -> CumulativeCounter:
    """Return the counter whose samples a row holds: arrays `at_ns` and `counts`, and `width_bits` and `bound_ns`."""
    gained = compute_increments(row["at_ns"], row["counts"], row["width_bits"]).gained
    return CumulativeCounter.from_increments(row["at_ns"], gained, row["bound_ns"])


def _samples(
    run: Run, table: str, counter: str, place: tuple[str, ...], trials: tuple[str, ...] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a cumulative column of `table`, one row for each place that has it, as `counted` takes them.

    Interfaces of one place, which are sampled at the same instants, are added up.
    """
    if counter not in schema(table).names:
        return iter(())
    at = ", ".join(place)
    rows = query(
        run,
        f"""
        select {at}, max(offset_bound_ns) as bound_ns, 64 as width_bits,
               list(controller_ns order by controller_ns) as at_ns, list({counter} order by controller_ns) as counts
        from (
            select {at}, controller_ns, max(offset_bound_ns) as offset_bound_ns, sum({counter})::bigint as {counter}
            from {table} where {counter} is not null {_among(trials)} group by {at}, controller_ns
        ) group by {at} order by {at}
        """,  # noqa: S608
    )
    return rows_with_arrays(rows)


def _among(trials: tuple[str, ...] | None) -> str:
    """Return the condition, in SQL, that a row is of one of the trials; empty for None."""
    return "" if trials is None else f"and trial in ({', '.join(map(repr, trials)) or 'null'})"


def _value(scalar: pa.Scalar) -> Any:
    if not isinstance(scalar, pa.ListScalar):
        return scalar.as_py()
    values = scalar.values
    return np.array(values.to_pylist(), object) if values.null_count else values.to_numpy()


def filter_rows(table: pa.Table, **values: Any) -> pa.Table:
    """Return the rows of `table` whose columns have the given values."""
    return table.filter(reduce(and_, (pc.field(column) == value for column, value in values.items())))
