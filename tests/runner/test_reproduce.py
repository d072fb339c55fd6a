# SPDX-License-Identifier: Apache-2.0
"""`roundabout reproduce` runs what decides the scoreboard's rows, once, and goes on where it was stopped."""

import shutil

import pytest

from analysis import papers
from roundabout.cli.main import main
from roundabout.store import Run

pytestmark = pytest.mark.unit


def test_deciding_runs_are_on_testbeds_that_model_what_the_row_depends_on():
    pairs = papers.deciding_runs()
    assert ("unfair-vgg19", "packets") in pairs
    assert ("cassini-snapshots", "fluid") in pairs
    assert ("iteration-flows", "lab") in pairs
    assert ("cluster-marks-model-parallel", "packets") in pairs
    assert len(pairs) == len(set(pairs))


def test_complete_runs_are_left_and_interrupted_ones_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(papers, "deciding_runs", lambda: (("two-servers", "fluid"),))
    assert main(["reproduce", "--runs", str(tmp_path)]) == 0
    (run,) = Run.all(tmp_path)
    keys = run.committed()
    assert main(["reproduce", "--runs", str(tmp_path)]) == 0
    assert f"complete {run.path}" in " ".join(capsys.readouterr().out.split())
    lost = sorted(keys)[0]
    shutil.rmtree(run.path / "trials" / lost)
    assert main(["reproduce", "--runs", str(tmp_path)]) == 0
    (again,) = Run.all(tmp_path)
    assert (again.id, again.committed()) == (run.id, keys)
