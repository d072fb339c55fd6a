# SPDX-License-Identifier: Apache-2.0
"""Runs on disk: found again, never overwritten, given back, and clear about what is wrong with them."""

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from roundabout.store import Identity, Run, StoreError, Units, build_table, files, schemas
from tests.store.written_runs import FIRST, SECOND, make, record, write_flow, zeros

pytestmark = pytest.mark.unit


def test_runs_are_found_by_folder_id_experiment_and_last(tmp_path):
    first = make(tmp_path)
    second = make(tmp_path, run_id=SECOND)
    other = make(tmp_path, "another", "20261121T100000Z-0002")
    assert Run.open(first.path).path == first.path.resolve()
    assert Run.open(FIRST, tmp_path).id == FIRST
    assert Run.open("fair-vgg19", tmp_path).id == second.id
    assert Run.open("another", tmp_path).id == other.id
    assert Run.open("last", tmp_path).id == SECOND
    for name in (FIRST, "fair-vgg19", "last"):  # a name may come as a path, as `open_run` promises
        assert Run.open(Path(name), tmp_path).id == Run.open(name, tmp_path).id


def test_a_run_that_is_not_there_is_one_message(tmp_path):
    make(tmp_path)
    with pytest.raises(StoreError, match=r"no run 'nothing' .*experiments with runs: fair-vgg19"):
        Run.open("nothing", tmp_path)
    with pytest.raises(StoreError, match="experiments with runs: none"):
        Run.open("last", tmp_path / "empty")


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not valid JSON"), ("[]", "schema is 'list', expected 1"), ('{"schema": 9}', "schema is 9, expected 1")],
)
def test_a_spoilt_manifest_is_one_message(tmp_path, text, message):
    run = make(tmp_path)
    (run.path / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match=message):
        _ = Run.open(run.path).manifest


def test_an_attempt_appears_only_when_it_is_committed(tmp_path):
    run = make(tmp_path)
    attempt = run.begin_attempt("k1")
    write_flow(attempt)
    attempt.log("start", 5, host="s0")
    assert run.committed() == frozenset()
    assert run.interrupted_attempts() == ["k1-1"]
    assert run.table("flows").num_rows == 0
    attempt.commit(record(run, "k1", 1))
    assert run.committed() == {"k1"}
    assert run.interrupted_attempts() == []
    assert run.table("flows")["bytes_acked"].to_pylist() == [50_000]
    run.refresh_trials()
    assert pq.read_table(run.path / "trials.parquet").num_rows == 1
    events = (run.path / "trials" / "k1" / "events.jsonl").read_text()
    assert json.loads(events) == {"controller_ns": 5, "event": "start", "host": "s0"}


def test_attempts_never_overwrite_each_other(tmp_path):
    run = make(tmp_path)
    run.begin_attempt("k1")  # cut short
    rejected = run.begin_attempt("k1")
    rejected.reject(record(run, "k1", 2, valid=False))
    third = run.begin_attempt("k1")
    third.commit(record(run, "k1", 3))
    assert (rejected.number, third.number) == (2, 3)
    assert run.rejected_count("k1") == 1
    names = {str(path.relative_to(run.path)) for path in run.path.glob("*/*") if path.is_dir()}
    assert names == {"partial/k1-1", "rejected/k1-2", "trials/k1"}


def test_the_first_committed_of_two_concurrent_attempts_counts(tmp_path):
    """As nodes of a cluster make them, where one was believed dead."""
    run = make(tmp_path)
    one, other = run.begin_attempt("k1"), Run(run.path).begin_attempt("k1")
    assert (one.number, other.number) == (1, 2)
    write_flow(other)
    other.commit(record(run, "k1", 2))
    one.commit(record(run, "k1", 1))
    (counts,), (aside,) = run.trials(), run.rejected_records()
    assert (counts["attempt"], counts["valid"]) == (2, True)
    assert (aside["attempt"], aside["valid"]) == (1, False)
    assert "was committed before this one" in aside["reason"]
    assert run.table("flows").num_rows > 0
    run.check()


def test_an_attempts_number_is_taken_once(tmp_path, monkeypatch):
    """Also by those who looked at the same time, and saw none."""
    run = make(tmp_path)
    run.begin_attempt("k1")
    monkeypatch.setattr(type(run.path), "glob", lambda *_: [])
    assert run.begin_attempt("k1").number == 2


def test_a_reference_stands_beside_the_trial_that_counts(tmp_path):
    run = make(tmp_path)
    run.begin_attempt("k1").commit(record(run, "k1", 1))
    again = run.begin_attempt("k1")
    write_flow(again)
    again.add_reference(record(run, "k1", 2))
    (referred,) = run.references()
    assert run.table_of(referred, "flows")["bytes_acked"].to_pylist() == [50_000]
    assert [each["attempt"] for each in run.trials()] == [1]
    run.check()
    (run.path / "references" / "k1-2" / "flows.parquet").unlink()
    with pytest.raises(StoreError, match="missing"):
        run.check()


def test_invalid_trials_are_left_out_unless_requested(tmp_path):
    run = make(tmp_path)
    for key, valid in (("k1", True), ("k2", False)):
        attempt = run.begin_attempt(key)
        write_flow(attempt)
        attempt.commit(record(run, key, 1, valid=valid))
    assert run.table("flows")["trial"].to_pylist() == ["k1"]
    assert run.table("trials")["trial"].to_pylist() == ["k1"]
    assert run.table("flows", valid_only=False).num_rows == 2
    assert run.table("trials", valid_only=False).num_rows == 2
    assert run.table("iterations").schema.equals(schemas.schema("iterations"), check_metadata=True)


def test_a_run_is_known_by_a_digest_of_what_it_measured(tmp_path):
    run = make(tmp_path)
    digests = [run.digest()]
    run.begin_attempt("a").commit(record(run, "a", 1))
    digests.append(run.digest())
    assert Run(run.path).digest() == digests[-1]
    run.write_manifest({**run.manifest, "experiment": {"name": "other"}})
    digests.append(run.digest())
    assert len(set(digests)) == 3


def test_two_runs_never_share_a_folder(tmp_path):
    manifest = Run.create(tmp_path, "e", {"run": FIRST}, FIRST).path / "manifest.json"
    was = manifest.read_bytes()
    with pytest.raises(StoreError, match=f"found a run at .*{FIRST}, expected none"):
        Run.create(tmp_path, "e", {"run": "another"}, FIRST)
    assert manifest.read_bytes() == was


def test_only_bytes_are_converted(tmp_path):
    who = Identity(FIRST, "k1", "fair", "{}", 1, 1)
    values = zeros("queue", 7)
    text = {"host": ["tor0"], "link": ["L1"], "interface": ["p1"], "towards": ["tor1"], "marks": [None]}
    (row,) = build_table("queue", who, {**values, **text}, Units(50)).to_pylist()
    assert (row["tx_bytes"], row["backlog_bytes"]) == (350, 350)
    assert (row["drops"], row["host_ns"], row["marks"]) == (7, 7, None)


def test_a_counter_is_converted_by_its_own_unit():
    who = Identity(FIRST, "k1", "fair", "{}", 1, 1)
    unit = ["bytes", "bytes/s", "packets", "bytes"]
    value = [2**53 + 1, 7, 7, None]
    columns = [column.name for column in schemas.columns("device_counters")]
    texts = dict.fromkeys(("host", "device", "source", "counter"), [""] * 4)
    values = {name: [0] * 4 for name in columns} | texts | {"unit": unit, "value": value}
    found = build_table(
        "device_counters", who, {name: values[name] for name in columns if name not in vars(who)}, Units(50)
    )
    assert found["value"].to_pylist() == [50 * (2**53 + 1), 350, 7, None]


def test_every_schema_says_its_version():
    for table in schemas.TABLES:
        assert schemas.schema(table).metadata == {b"roundabout.table": table.encode(), b"roundabout.version": b"1"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_go_back_to_who_called_sudo(tmp_path, monkeypatch):
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "5678")
    run = make(tmp_path / "runs")
    attempt = run.begin_attempt("k1")
    write_flow(attempt)
    attempt.log("start", 5)
    attempt.commit(record(run, "k1", 1))
    made = [tmp_path / "runs", *(tmp_path / "runs").rglob("*")]
    assert len(made) > 8
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(1234, 5678)}


def test_a_link_to_an_open_file_is_never_replaced(tmp_path):
    """Refuse the link, since root's rename would replace /dev/stdout for the whole machine."""
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    with pytest.raises(StoreError, match="it is a link"):
        files.write_text(link, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["stdout"]
    assert link.is_symlink()


def test_text_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "summary.json"
    files.write_text(path, "old")

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full") as error:
        files.write_text(path, "new")
    assert "roundabout resume" in error.value.hint
    assert [each.name for each in tmp_path.iterdir()] == ["summary.json"]
    assert path.read_text() == "old"
