# SPDX-License-Identifier: Apache-2.0
"""Packets are the paper's, also those of runs that stored them as they were on the wire."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from roundabout.store import Identity, Run, build_table, schemas

WHO = Identity("r", "k", "v", "{}", 1, 1)


def packets(scale):
    columns = {column.name: [None] for column in schemas.columns("packets")[len(vars(WHO)) :]}
    return build_table("packets", WHO, {**columns, "frame_bytes": [1500], "payload_bytes": [1434]}, scale)


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
