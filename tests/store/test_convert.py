# SPDX-License-Identifier: Apache-2.0
"""Packets are the paper's, also those of runs that stored them as they were on the wire."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from roundabout.store import Identity, Run, Units, build_table, schemas

pytestmark = pytest.mark.unit

WHO = Identity("r", "k", "v", "{}", 1, 1)


def packets(scale):
    columns = {column.name: [None] for column in schemas.columns("packets")[len(vars(WHO)) :]}
    return build_table("packets", WHO, {**columns, "frame_bytes": [1500], "payload_bytes": [1434]}, Units(scale))


def stored(folder, table):
    run = Run.create(folder, "e", {"testbed": {"scale": 100.0}, "run": "r", "experiment": {}, "plan": []})
    trial = run.path / "trials" / "k"
    trial.mkdir(parents=True)
    pq.write_table(table, trial / "packets.parquet")
    record = {**vars(WHO), "valid": True, "reason": "", "started_utc": "now", "spec": {}}
    (trial / "trial.json").write_text(json.dumps(record))
    pq.write_table(schemas.schema("iterations").empty_table(), trial / "iterations.parquet")
    return run


def test_packets_are_stored_in_the_papers_bytes(tmp_path):
    run = stored(tmp_path, packets(100))
    assert not run.is_outdated("packets")
    assert run.table("packets")["payload_bytes"].to_pylist() == [143_400]


def test_packets_of_older_runs_are_read_in_the_papers_bytes(tmp_path):
    old = packets(1)
    fields = [
        field.with_metadata({"unit": "wire bytes"}) if field.name in ("frame_bytes", "payload_bytes") else field
        for field in old.schema
    ]
    run = stored(tmp_path, old.cast(pa.schema(fields)))
    assert run.is_outdated("packets")
    found = run.table("packets")
    assert found["payload_bytes"].to_pylist() == [143_400]
    assert found["frame_bytes"].to_pylist() == [150_000]
    assert found.schema.field("payload_bytes").metadata[b"unit"] == b"bytes"


BEGAN_NS = 1_790_000_000_000_000_000  # UTC of a run, which floats do not hold to the nanosecond
DILATIONS = st.floats(1, 100)


def flow(units, **instants):
    values = {"host": "s0", "host_ns": 5_000_000_000, "controller_ns": 0, "offset_bound_ns": 35, **instants}
    names = ("traffic", "flow", "class", "destination", "bytes", "measured", "start_ns", "end_ns")
    fields = {**dict.fromkeys(names), "bytes": 600, **values}
    (row,) = build_table("cross_flows", WHO, {name: [value] for name, value in fields.items()}, units).to_pylist()
    return row


def test_stretched_times_are_stored_as_the_papers():
    units = Units(scale=100, dilation=10, anchor_ns=BEGAN_NS)
    row = flow(units, start_ns=BEGAN_NS + 2_000_000_000, end_ns=None, controller_ns=BEGAN_NS)
    assert (row["start_ns"], row["end_ns"]) == (BEGAN_NS + 200_000_000, None)
    assert (row["controller_ns"], row["host_ns"], row["offset_bound_ns"]) == (BEGAN_NS, 500_000_000, 4)
    assert row["bytes"] == 6000


@given(DILATIONS, st.lists(st.integers(0, 10**13), min_size=2, max_size=20))
def test_intervals_are_divided_by_the_dilation(dilation, since_ns):
    units = Units(100, dilation, BEGAN_NS)
    found = units.to_paper_instants(BEGAN_NS + np.array(since_ns))
    expected = np.array(since_ns) / dilation
    assert np.abs(found - BEGAN_NS - expected).max() <= 1
    assert (np.argsort(found, kind="stable") == np.argsort(np.array(since_ns), kind="stable")).all() or dilation > 1


@given(DILATIONS, st.integers(1, 10**6))
def test_a_rate_is_the_papers_bytes_over_its_time(dilation, host_bytes):
    units = Units(100, dilation)
    assert np.isclose(units.factor("bytes") / units.factor("ns"), units.factor("Gbit/s"))
    assert np.isclose(units.bytes_scale * dilation, 100)


def test_without_dilation_times_are_unchanged():
    row = flow(Units(100), start_ns=BEGAN_NS + 1, end_ns=BEGAN_NS + 3, controller_ns=BEGAN_NS)
    assert (row["start_ns"], row["end_ns"], row["bytes"]) == (BEGAN_NS + 1, BEGAN_NS + 3, 60_000)
