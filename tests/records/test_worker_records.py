# SPDX-License-Identifier: Apache-2.0
"""What workers record of themselves: kept beside their trial, and read from there in the papers' units."""

import base64
import gzip
import json
import shutil
from pathlib import Path

import pytest

from analysis.statistics import phases
from roundabout.cli.main import main
from roundabout.runner.tables.rows import RecordError
from roundabout.runner.trial.jobs import Worker
from roundabout.runner.trial.trial_file import store_record
from roundabout.store import Run

pytestmark = pytest.mark.unit

TRACES = Path(__file__).parent / "ddp-lab"
TESTBED = {"kind": "lab", "scale": 100.0, "dilation": 1.0, "emulated": True}
WORKER = Worker("j1", 1, "s2", ())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path, "recorded", {"experiment": {}, "testbed": TESTBED, "plan": []})


def test_a_record_lies_beside_its_trial(run):
    attempt = run.begin_attempt("k1")
    packed = gzip.compress(b"{}")
    store_record(attempt, WORKER, {"format": "kineto", "gzip_base64": base64.b64encode(packed).decode()})
    assert (attempt.path / "records" / "j1-1.kineto.json.gz").read_bytes() == packed


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({"format": "kineto"}, "nothing"),
        ({"format": "kineto", "gzip_base64": "?"}, "expected a format"),
        ({"format": "../j1", "gzip_base64": "AAAA"}, "the format '../j1'"),
        ({"gzip_base64": "AAAA"}, "the format None"),
    ],
)
def test_an_invalid_worker_record_is_refused(run, event, found):
    with pytest.raises(RecordError, match=r"job j1, worker 1 on s2 said a record of .*") as error:
        store_record(run.begin_attempt("k1"), WORKER, event)
    assert found in str(error.value)


def test_profiles_of_a_runs_records_have_the_papers_bytes(run, monkeypatch, capsys):
    monkeypatch.setattr(phases, "RESAMPLINGS", 3)
    folder = run.path / "trials" / "k1" / "records"
    folder.mkdir(parents=True)
    paths = [shutil.copy(path, folder) for path in sorted(TRACES.glob("*.json.gz"))]
    assert main(["profile", "records", *map(str, paths), "--json"]) == 0
    captured = capsys.readouterr()
    reported = json.loads(captured.out)
    counted = json.loads((TRACES / "counted.json").read_text())
    assert reported["run"] == run.id
    assert sum(phase.get("bytes", 0) for phase in reported["profile"]["phases"]) == pytest.approx(
        counted["bytes"], rel=0.01
    )
    assert "whose lab is 1:100" in " ".join(captured.err.split())
    assert main(["profile", "records", str(paths[0]), str(TRACES / "rank1.json.gz")]) == 2
    assert "files of several runs, or of one and of none" in " ".join(capsys.readouterr().err.split())
