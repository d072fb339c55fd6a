# SPDX-License-Identifier: Apache-2.0
"""What is read of a run, one call each."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analysis.reading import data
from analysis.statistics.cumulative_counter import EMPTY, CumulativeCounter
from roundabout.store import StoreError

pytestmark = pytest.mark.unit


def test_iterations_take_the_workers_together(run):
    table, found = run.table("iterations"), data.iterations(run)
    assert found.num_rows == 5 * (2 * 10 + 2 * 2 * 50)
    assert found.column_names == [
        "trial", "variant", "levels", "repetition", "job", "iteration", "start_ns", "compute_end_ns", "comm_end_ns",
        "iteration_ms", "offset_bound_ns",
    ]  # fmt: skip
    row = found.to_pylist()[77]
    same = data.filter_rows(table, trial=row["trial"], job=row["job"], iteration=row["iteration"])
    assert same.num_rows == 2
    assert row["start_ns"] == pc.min(same["start_ns"]).as_py()
    assert row["comm_end_ns"] == pc.max(same["comm_end_ns"]).as_py()
    assert row["iteration_ms"] == pc.max(same["iteration_ms"]).as_py()


def test_only_valid_trials_count(make_run):
    run = make_run(repetitions=2, spoilt={("fair", 2)})
    assert set(data.iterations(run)["variant"].to_pylist()) == {"alone", "fair", "unfair"}
    fair = data.filter_rows(data.iterations(run), variant="fair")
    assert set(fair["repetition"].to_pylist()) == {1}
    assert data.query(run, "select count(*) as n from trials")["n"].to_pylist() == [7]


def test_counters_are_what_the_table_holds(run):
    table = run.table("counters")
    sent = data.counters(run, "tx_bytes")
    assert set(sent) == set(zip(table["trial"].to_pylist(), table["host"].to_pylist(), strict=True))
    place, counted = next(iter(sent.items()))
    rows = data.filter_rows(table, trial=place.trial, host=place.host).sort_by("controller_ns")
    assert counted.at_ns.tolist() == rows["controller_ns"].to_pylist()
    assert (counted.totals + rows["tx_bytes"][0].as_py()).tolist() == rows["tx_bytes"].to_pylist()


def test_unmeasured_tables_are_empty(run):
    assert data.ports(run, "pauses") == {}
    assert data.query(run, "select * from device_counters").num_rows == 0


def test_a_table_of_an_older_run_lacks_columns_and_is_read_all_the_same(short_run):
    for path in short_run.path.glob("trials/*/iterations.parquet"):
        pq.write_table(pq.read_table(path).drop_columns(["late_ms", "received_bytes"]), path)
    assert data.iterations(short_run).num_rows == 220
    assert data.query(short_run, "select count(late_ms) as n from iterations")["n"].to_pylist() == [0]


def test_a_broken_file_is_named(short_run):
    path = next(short_run.path.glob("trials/*/queue.parquet"))
    path.write_bytes(b"not a table")
    with pytest.raises(StoreError, match=str(path)) as caught:
        data.ports(short_run, "marks")
    assert "run the experiment again" in caught.value.hint


def test_a_mistake_in_a_query_is_shown_as_such(run):
    with pytest.raises(duckdb.BinderException, match="no_such_column"):
        data.query(run, "select no_such_column from iterations")


def test_rates_are_linear_between_samples_and_not_known_outside():
    sent = CumulativeCounter.from_increments(np.array([0, 10, 20]), np.array([100, 0]))
    rates = sent.rate(np.array([-10, 0, 5, 10, 20, 30]))
    assert np.isnan(rates[[0, 4]]).all()
    assert rates[1:4] == pytest.approx([10e9, 10e9, 0])
    assert np.isnan(EMPTY.rate(np.array([0, 10, 20]))).all()


def test_rows_are_found_by_value():
    table = pa.table({"a": ["x", "y", "x"], "b": [1, 2, 3]})
    assert data.filter_rows(table, a="x", b=3).num_rows == 1
