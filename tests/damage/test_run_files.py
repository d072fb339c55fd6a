# SPDX-License-Identifier: Apache-2.0
"""A report on a run that lost a file fails and names the file; files that are derived are made again."""

import contextlib
import itertools
import json
import shutil
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.reading import data
from analysis.reports import scoreboard
from analysis.reports.summary import stored_or_new, summarize_run
from roundabout.cli.main import main
from roundabout.store import RAW, Run, StoreError, contents
from roundabout.store.contents import RECORD
from roundabout.store.files import read_json
from tests.analysis.sweeps.sweep_runs import experiment, sweep_run
from tests.analysis.synthetic_runs import as_older
from tests.analysis.unfair_runs import synthetic_run
from tests.damage.run_damages import DAMAGES, LOSSES, missing, moved, truncated
from tests.damage.run_readers import READERS, read

pytestmark = pytest.mark.unit

# Files that a report makes again; the journal is a copy for people.
DERIVED = ("summary.json", "trials.parquet", "report.html", "journal.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One repetition; a trial has events and raw packets, and an attempt at it was put aside."""
    run = synthetic_run(tmp_path_factory.mktemp("runs"), repetitions=1)
    record = run.trials()[0]
    folder = (run.path / "trials" / record["trial"]).rename(run.path / "before")
    put_aside = run.begin_attempt(record["trial"])
    put_aside.log("failed", 5)
    put_aside.reject({**record, "valid": False, "reason": "spoilt"})
    attempt = run.begin_attempt(record["trial"])
    for path in folder.glob("*.parquet"):
        path.rename(attempt.path / path.name)
    attempt.log("start", 5)
    (attempt.path / RAW / "s0").mkdir(parents=True)
    (attempt.path / RAW / "s0" / "0.pcap").write_bytes(b"packets")
    attempt.commit(record)
    shutil.rmtree(folder)
    run.refresh_trials()
    run.write_summary(summarize_run(run).record())
    return run


@pytest.fixture
def short_run(whole, tmp_path):
    """The same, to be damaged."""
    return Run(shutil.copytree(whole.path, tmp_path / "runs" / whole.path.parent.name / whole.id))


def measured_files(run):
    """Return the files that hold what was measured, relative to the run."""
    found = sorted(path.relative_to(run.path) for path in run.path.rglob("*") if path.is_file())
    return [path for path in found if path.name not in DERIVED and path.parts[0] != "partial"]


def faults(run, scratch, files):
    """Lose each of the files in each way, and return the cases in which the report is not one error on the file."""
    found = []
    for file, (name, lose) in itertools.product(files, LOSSES.items()):
        copy = Run(shutil.copytree(run.path, scratch / run.path.parent.name / run.id))
        lose(copy.path / file)
        status, said = read(READERS["report"], copy)
        is_clear = said.startswith("error: ") and said.count("error: ") == 1 and "unexpected" not in said
        is_named = str(file) in said or name == "swapped" or "no run" in said
        if status != 1 or not is_clear or not is_named:
            found.append(f"{file}, {name}: status {status}: {said}")
        shutil.rmtree(copy.path)
    return found


def test_a_damaged_file_of_a_run_is_named_and_the_report_fails(whole, tmp_path):
    trial = whole.table("trials")["trial"][0].as_py()
    files = [path for path in measured_files(whole) if path.parts[0] != "trials" or trial in path.parts]
    assert len(files) == 1 + 8 + 2
    assert faults(whole, tmp_path, files) == []


@pytest.mark.proof
@pytest.mark.parametrize("older", [False, True], ids=["", "of an older revision"])
def test_any_damaged_file_of_any_run_is_named_and_the_report_fails(tmp_path, older):
    spoilt = {} if older else {("fair", 2)}  # of an older trial that is invalid it is unknown what it must have
    runs = [
        synthetic_run(tmp_path / "unfair", repetitions=3, spoilt=spoilt),
        sweep_run(tmp_path / "sweep", experiment(tmp_path, loads=[0, 6, 12], repetitions=2), captured={6, 12}),
    ]
    for run in runs:
        if older:
            as_older(run)
        assert faults(run, tmp_path / "copies", measured_files(run)) == []


def test_derived_files_are_made_anew_after_damage(whole, short_run, capsys):
    run = short_run
    for way in (missing, moved):
        way(run.path / "summary.json")
        way(run.path / "trials.parquet")
        assert main(["report", "--json", str(run.path)]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads((whole.path / "summary.json").read_text())
        assert (run.path / "summary.json").read_bytes() == (whole.path / "summary.json").read_bytes()
        assert run.table("trials").equals(pq.read_table(run.path / "trials.parquet"))
        assert not any(path.is_symlink() for path in run.path.iterdir())


def test_a_damaged_list_of_trials_is_refused_with_a_hint(short_run):
    path = short_run.path / "trials.parquet"
    rows = pq.read_table(path).to_pylist()
    truncated(path)
    with pytest.raises(StoreError, match=r"trials\.parquet") as lost:
        summarize_run(short_run)
    assert f"roundabout report {short_run.path}" in lost.value.hint
    pq.write_table(pa.Table.from_pylist([row | {"run": "another"} for row in rows]), path)
    with pytest.raises(StoreError, match=r"trials\.parquet"):
        summarize_run(short_run)


def test_an_older_run_is_read_and_still_cannot_lack_a_table(short_run):
    as_older(short_run)
    assert summarize_run(short_run).record() == json.loads((short_run.path / "summary.json").read_text())
    path = next(short_run.path.glob("trials/*/counters.parquet"))
    path.unlink()
    for reader in (summarize_run, lambda run: run.table("counters"), lambda run: data.counters(run, "tx_bytes")):
        with pytest.raises(StoreError, match=str(path)):
            reader(Run(short_run.path))


def test_a_trial_that_is_gone_as_a_whole_is_reported(short_run):
    key = short_run.trials()[0]["trial"]
    shutil.rmtree(short_run.path / "trials" / key)
    with pytest.raises(StoreError, match=key) as lost:
        summarize_run(short_run)
    assert "roundabout resume" in lost.value.hint


def test_a_table_is_not_looked_for_elsewhere(short_run):
    path = next(short_run.path.glob("trials/*/trial.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"trial": "../elsewhere"}))
    with pytest.raises(StoreError, match=r"trial\.json: trial: "):
        summarize_run(short_run)


@pytest.mark.parametrize("field", ["valid", "attempt"])
def test_a_record_that_lacks_a_field_is_one_message(short_run, capsys, field):
    path = next(short_run.path.glob("trials/*/trial.json"))
    record = json.loads(path.read_text())
    del record[field]
    path.write_text(json.dumps(record))
    for command in ("report", "status"):
        assert main([command, str(short_run.path)]) == 1
        assert capsys.readouterr().err.startswith(f"error: {path}: {field}: ")


def test_a_record_that_is_no_object_is_refused(short_run):
    path = next(short_run.path.glob("trials/*/trial.json"))
    DAMAGES["JSON: a list"](path)
    with pytest.raises(StoreError, match=str(path)):
        summarize_run(short_run)


def test_a_summary_of_another_run_is_made_anew(short_run):
    right = summarize_run(short_run)
    short_run.write_summary(right.record() | {"run": "another"})
    assert stored_or_new(short_run) == right


def test_the_scoreboard_names_runs_that_it_could_not_read(short_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scoreboard, "load_catalog", lambda _: {})  # which takes two seconds
    (short_run.path / "manifest.json").unlink()
    assert main(["scoreboard", "--json", "--runs", str(tmp_path / "runs")]) == 1
    said = capsys.readouterr()
    assert str(short_run.path / "manifest.json") in said.err
    assert json.loads(said.out)["rows"]
    assert short_run.id not in said.out


# A bit of every seventh or eighth byte; all of them.
@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.proof)])
def test_each_flipped_bit_of_a_trial_record_is_detected(short_run, step):
    record = short_run.trials()[0]
    path = short_run.path / "trials" / record["trial"] / RECORD
    stored = path.read_bytes()
    silent = 0
    for place in range(0, 8 * len(stored), step):
        changed = bytearray(stored)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        with contextlib.suppress(StoreError):
            found = contents.read_record(path.parent, short_run.id)
            assert {name: found.get(name) for name in record} == record, f"bit {place} of {RECORD}"
            silent += 1
    assert silent < 8 * len("sha256")  # a seal of another name is none, as older records have


def test_a_record_of_before_there_were_seals_is_read(short_run):
    path = next(short_run.path.glob("trials/*/trial.json"))
    record = json.loads(path.read_text())
    del record["sha256"]
    path.write_text(json.dumps(record))
    assert summarize_run(short_run).record() == json.loads((short_run.path / "summary.json").read_text())


def test_raw_packets_that_were_dropped_for_the_budget_are_not_missed(short_run):
    assert list(short_run.path.rglob("*.pcap"))
    short_run.drop_raw(0)
    short_run.check()
    assert not list(short_run.path.rglob("*.pcap"))


@pytest.fixture
def older_run(tmp_path):
    """A computed run of a revision whose records had nothing of files."""
    with tarfile.open(Path(__file__).parents[1] / "analysis" / "older" / "computed.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    return Run.open("tiny", tmp_path)


def test_an_older_revisions_run_is_reported_with_the_same_figures(older_run, capsys):
    before = read_json(older_run.path / "summary.json")
    assert main(["report", "--json", str(older_run.path)]) == 0
    after = read_json(older_run.path / "summary.json")
    assert (before["schema"], after["schema"]) == (2, 4)
    for old, new in zip(before["cells"], after["cells"], strict=True):
        for name in ("median_ms", "mean_ms", "fluid"):
            assert new[name] == old[name]
    assert main(["status", str(older_run.path)]) == 0
    assert "complete: 1 of 1 trials committed" in capsys.readouterr().out


def test_the_last_revisions_run_cannot_lack_what_was_measured(older_run, tmp_path):
    files = [path for path in measured_files(older_run) if path.stem not in ("counters", "queue")]
    assert [path.name for path in files] == ["manifest.json", "iterations.parquet", "trial.json"]
    assert faults(older_run, tmp_path / "copies", files) == []
