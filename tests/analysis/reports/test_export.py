# SPDX-License-Identifier: Apache-2.0
"""A run's tables as CSV, and a trial as a trace."""

import csv
import json

import pytest

from analysis.reports.export import export_tables, export_trace
from roundabout.cli.main import main
from roundabout.store import StoreError

pytestmark = pytest.mark.unit


def test_tables_come_with_a_dictionary_of_all_their_columns(short_run, tmp_path):
    written = {path.stem: rows for path, rows in export_tables(short_run, tmp_path / "csv")}
    assert {"iterations", "counters", "trials", "columns"} <= written.keys()
    described = list(csv.DictReader((tmp_path / "csv/columns.csv").read_text().splitlines()))
    units = {(row["table"], row["column"]): row["unit"] for row in described}
    assert units["iterations", "iteration_ms"] == "ms"
    for name, count in written.items():
        rows = list(csv.DictReader((tmp_path / f"csv/{name}.csv").read_text().splitlines()))
        assert len(rows) == count > 0
        if name != "columns":
            assert {(name, column) for column in rows[0]} == {each for each in units if each[0] == name}
    stored = short_run.table("iterations")["iteration_ms"].to_pylist()
    exported = csv.DictReader((tmp_path / "csv/iterations.csv").read_text().splitlines())
    assert [float(row["iteration_ms"]) for row in exported] == stored


def test_a_trace_has_each_iteration_where_it_was(short_run):
    found = json.loads(export_trace(short_run, "first"))
    first = short_run.trials()[0]
    assert found["otherData"]["trial"] == first["trial"]
    events = found["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {*names.values()} == {"links", *first["spec"]["jobs"]}
    rows = [row for row in short_run.table("iterations").to_pylist() if row["trial"] == first["trial"]]
    spans = [event for event in events if event["ph"] == "X" and event["name"].startswith("iteration")]
    assert sorted(each["dur"] for each in spans) == pytest.approx(
        sorted((row["comm_end_ns"] - row["start_ns"]) / 1e3 for row in rows), abs=1
    )
    assert min(event["ts"] for event in spans) == 0
    carried = [event for event in events if event["ph"] == "C" and event["name"].endswith("Gbit/s")]
    assert 0 < max(event["args"]["Gbit/s"] for event in carried) < 100


def test_a_trace_keeps_to_the_format_as_it_is_documented(short_run):
    events = json.loads(export_trace(short_run, "first"))["traceEvents"]
    fields = {"M": {"pid", "args"}, "X": {"cat", "pid", "tid", "ts", "dur"}, "C": {"cat", "pid", "ts", "args"}}
    for event in events:
        assert event.keys() - {"ph", "name"} - ({"tid"} if event["ph"] == "M" else set()) == fields[event["ph"]]
        assert all(type(event[each]) is int and event[each] > 0 for each in ("pid", "tid") if each in event)
        assert all(type(event[each]) is int and event[each] >= 0 for each in ("ts", "dur") if each in event)
    named = {(event["pid"], event.get("tid")) for event in events if event["ph"] == "M"}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"} | {
        (event["pid"], None) for event in events
    } == named
    counted = [event["args"] for event in events if event["ph"] == "C"]
    assert counted
    assert all(type(value) is float for args in counted for value in args.values())


def test_a_workers_trace_events_nest(short_run):
    open_until = {}
    events = [event for event in json.loads(export_trace(short_run, "first"))["traceEvents"] if event["ph"] == "X"]
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        around = open_until.setdefault(event["tid"], [])
        while around and around[-1] <= event["ts"]:
            around.pop()
        assert not around or event["ts"] + event["dur"] <= around[-1]
        around.append(event["ts"] + event["dur"])


def test_a_trial_that_is_not_there_is_answered_with_those_that_are(short_run):
    key = short_run.trials()[0]["trial"]
    with pytest.raises(StoreError, match="found no trials 'zz'") as caught:
        export_trace(short_run, "zz")
    assert key in caught.value.hint


def test_the_command_wants_one_of_two(short_run, tmp_path, capsys):
    where = [str(short_run.path)]
    assert main(["export", *where]) == 2
    assert "found neither, expected --csv FOLDER or --trace TRIAL" in capsys.readouterr().err
    assert main(["export", *where, "--trace", "first", "--to", str(tmp_path / "trace.json")]) == 0
    assert json.loads((tmp_path / "trace.json").read_text())["displayTimeUnit"] == "ms"
