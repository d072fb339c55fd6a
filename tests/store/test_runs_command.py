# SPDX-License-Identifier: Apache-2.0
"""The table of all runs, and runs that are deleted."""

import json

import pytest

from roundabout.cli.main import main
from roundabout.store import Run, StoreError
from tests.store.written_runs import make

pytestmark = pytest.mark.unit

SECOND = "20261122T093012Z-0001"


def listed(folder, capsys, *words):
    assert main(["runs", *words, "--runs", str(folder), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_all_runs_are_listed_and_chosen_by_words(tmp_path, capsys):
    one, other = make(tmp_path), make(tmp_path, "unfair", SECOND)
    assert [each["run"] for each in listed(tmp_path, capsys)] == [one.id, other.id]
    (found,) = listed(tmp_path, capsys, "unfair", "20261122")
    assert (found["run"], found["experiment"], found["begun_utc"][:10]) == (SECOND, "unfair", "2026-11-22")
    assert found["size_bytes"] == sum(path.stat().st_size for path in other.path.iterdir())
    assert listed(tmp_path, capsys, "unfair", "fluid") == []
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert one.id in capsys.readouterr().out


def test_a_damaged_run_is_listed_with_what_is_wrong(tmp_path, capsys):
    run = make(tmp_path)
    (run.path / "manifest.json").write_text("{")
    (found,) = listed(tmp_path, capsys)
    assert "is not valid JSON" in found["fault"]


def test_a_run_is_deleted_after_a_prompt_and_by_its_own_name_alone(tmp_path, capsys, monkeypatch):
    one, other = make(tmp_path), make(tmp_path, run_id=SECOND)
    where = ["--runs", str(tmp_path)]
    assert main(["rm", "last", "--yes", *where]) == 2
    assert "expected a run's id or its folder" in capsys.readouterr().err
    monkeypatch.setattr("typer.confirm", lambda _: False)
    assert main(["rm", one.id, *where]) == 0
    assert one.path.exists()
    assert main(["rm", one.id, "--yes", *where]) == 0
    assert [run.id for run in Run.all(tmp_path)] == [other.id]
    other.delete()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_going_on_is_not_deleted(tmp_path):
    run = make(tmp_path)
    with run.hold(), pytest.raises(StoreError, match="is going on, expected a run that ended"):
        run.delete()
    assert run.path.exists()
    run.delete()


def test_a_half_deleted_run_is_no_run_and_the_next_rm_removes_it(tmp_path, monkeypatch):
    one, other = make(tmp_path), make(tmp_path, run_id=SECOND)

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.delete()
    assert [run.id for run in Run.all(tmp_path)] == [SECOND]
    assert len(list(other.path.parent.iterdir())) == 2
    other.delete()
    assert list(tmp_path.iterdir()) == []
