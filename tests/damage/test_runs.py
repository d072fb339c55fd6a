# SPDX-License-Identifier: Apache-2.0
"""Every command that reads runs, on a run with one damaged file: a result, or one clear error."""

import contextlib
import hashlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roundabout.cli.main import main
from roundabout.cli.runs import resume, watch
from roundabout.spec import Experiment
from roundabout.store import Run
from tests.analysis.computed_run import compute
from tests.damage.run_damages import DAMAGES, missing, other_table, pipe, truncated
from tests.damage.run_readers import READERS, read

pytestmark = pytest.mark.unit

SHARE = 47  # CI takes one of so many combinations, the long proof all of them; prime, so that it meets every reader


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = compute(tmp_path_factory.mktemp("whole"))
    (run.path / "report.html").write_text("a page")
    (run.path / "live.json").write_text("{}")
    return run


@pytest.fixture
def run(whole: Run, tmp_path: Path) -> Run:
    return Run(shutil.copytree(whole.path, tmp_path / "runs" / "tiny" / whole.id))


def files_of(run: Run) -> list[str]:
    """Return one file of each name, relative to the run."""
    files = sorted(path for path in run.path.rglob("*") if path.is_file())
    return [str(path.relative_to(run.path)) for path in {path.name: path for path in files}.values()]


@pytest.fixture(autouse=True)
def nothing_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch.os, "nice", lambda _: None)
    monkeypatch.setattr(watch, "undo_when_ended", lambda: None)
    monkeypatch.setattr(resume, "execute", lambda work, *_, **__: work(NothingMissing()))


class NothingMissing:
    """A runner that finds no missing trial."""

    def resume(self, run: Run, _experiment: Experiment) -> Run:
        return run


def content(run: Run) -> dict[str, str]:
    """Return the SHA-256 of all that was measured in a run, by file."""
    files = [path for path in run.path.glob("*/**/*") if path.is_file() and not path.is_symlink()]
    made = ("profiles", "notebooks")
    measured = [path for path in files if path.relative_to(run.path).parts[0] not in made]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in measured}


def wrong(run: Run, reader: str) -> str | None:
    """Return what is not allowed of a reader's outcome."""
    before = content(run)
    status, said = read(READERS[reader], run)
    errors = f"\n{said}".count("\nerror: ")
    if any(bad in said for bad in ("unexpected", "Traceback", "bug", "\x1b")) or errors > 1:
        return f"{reader}: status {status}: {said[-400:]}"
    if errors and status not in (1, 2):
        return f"{reader}: status {status} with an error"
    if reader != "rm" and content(run) != before:
        return f"{reader} changed what was measured"
    return None


def combinations(run: Run) -> Iterator[tuple[str, str, str]]:
    return itertools.product([*files_of(run), "trials", ".lock"], DAMAGES, READERS)


def check(run: Run, scratch: Path, chosen: list[tuple[str, str, str]]) -> list[str]:
    found = []
    for file, damage, reader in chosen:
        copy = Run(shutil.copytree(run.path, scratch / "runs" / "tiny" / run.id))
        path = copy.path / file
        if path.is_dir():
            shutil.rmtree(path)
            path.touch()
        with contextlib.suppress(ValueError, OSError):  # of what this damage needs the file has nothing
            DAMAGES[damage](path)
        if fault := wrong(copy, reader):
            found.append(f"{file}, {damage}: {fault}")
        shutil.rmtree(scratch / "runs")
        shutil.rmtree(scratch / "csv", ignore_errors=True)
        (scratch / "trace.json").unlink(missing_ok=True)
    return found


def test_each_reader_gives_a_result_or_one_clear_error(whole: Run, tmp_path: Path) -> None:
    chosen = list(itertools.islice(combinations(whole), 0, None, SHARE))
    assert {reader for _, _, reader in chosen} == READERS.keys()
    assert {damage for _, damage, _ in chosen} == DAMAGES.keys()
    assert check(whole, tmp_path, chosen) == []


@pytest.mark.proof
def test_each_reader_gives_a_result_or_one_clear_error_for_every_damage(whole: Run, tmp_path: Path) -> None:
    assert check(whole, tmp_path, list(combinations(whole))) == []


@pytest.mark.parametrize("damage", [other_table, truncated])
def test_report_makes_a_damaged_list_of_trials_anew(run: Run, capsys: pytest.CaptureFixture[str], damage: Any) -> None:
    right = run.listed_trials()
    damage(run.path / "trials.parquet")
    assert main(["report", "--json", str(run.path)]) == 0
    assert f"{run.path / 'trials.parquet'}" in (said := capsys.readouterr().err)
    assert said.startswith("warning: ")
    assert Run(run.path).listed_trials() == right


def test_report_replaces_no_pipe(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    pipe(run.path / "trials.parquet")
    assert main(["report", "--json", str(run.path)]) == 1
    assert "trials.parquet" in capsys.readouterr().err
    assert (run.path / "trials.parquet").is_fifo()


@pytest.mark.parametrize("damage", [missing, truncated, pipe])
def test_a_damaged_experiment_file_is_named(run: Run, capsys: pytest.CaptureFixture[str], damage: Any) -> None:
    damage(run.path / "experiment.yaml")
    for words in (["report", "--json"], ["status"]):
        assert main([*words, str(run.path)]) == 0
        assert capsys.readouterr().err.startswith(f"warning: {run.path / 'experiment.yaml'} is ")


ABSENT = object()
FLUID = {"kind": "fluid", "emulated": True}


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("plan", ABSENT, "plan"),
        ("plan", [5], "plan.0"),
        ("plan", [{"key": None}], "plan.0.key"),
        ("experiment", ABSENT, "experiment"),
        ("testbed", ABSENT, "testbed"),
        ("testbed", {"kind": "fluid"}, "testbed.emulated"),
        ("testbed", {**FLUID, "scale": float("nan")}, "scale"),
        ("testbed", {**FLUID, "scale": True}, "scale"),
        ("where", {"testbed": ["fluid"]}, "where.testbed"),
        ("clock", {}, "clock.anchor_utc_ns"),
        ("sessions", {}, "sessions"),
    ],
)
def test_a_field_of_the_manifest_is_named(run, capsys, field: str, value: Any, named: str) -> None:
    path = run.path / "manifest.json"
    manifest = json.loads(path.read_text()) | {field: value}
    path.write_text(json.dumps({name: each for name, each in manifest.items() if each is not ABSENT}))
    for command in ("status", "report", "resume") if value is ABSENT else ("status",):
        assert main([command, str(run.path)]) == 1
        assert (said := capsys.readouterr().err).startswith(f"error: {path}: ")
        assert named in said


def test_an_experiment_of_another_version_is_named(run, capsys) -> None:
    path = run.path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["experiment"]["study"] = {"kind": 5}
    path.write_text(json.dumps(manifest))
    assert main(["report", str(run.path)]) == 1
    assert "manifest.json: experiment.study" in capsys.readouterr().err


def test_a_folder_without_a_run_differs_from_a_run_without_manifest(run, tmp_path, capsys) -> None:
    (run.path / "manifest.json").unlink()
    for argument, begin in (
        (str(tmp_path), f"error: {tmp_path} is no run"),
        (str(run.path), f"error: cannot read {run.path / 'manifest.json'}"),
        ("x" * 5000, "error: no run 'xxx"),
    ):
        assert main(["status", argument]) == 1
        assert capsys.readouterr().err.startswith(begin)


def test_a_folder_whose_name_is_an_impossible_date_is_no_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run.path.rename(run.path.with_name("20269921T093012Z-7f3a"))
    assert main(["runs", "--runs", str(run.path.parents[1])]) == 0
    assert capsys.readouterr().out.startswith("no run in ")


def test_a_summary_that_lacks_cells_is_made_anew_by_compare(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    path = run.path / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cells": []}))
    assert main(["compare", "--json", str(run.path), str(run.path)]) == 0
    assert json.loads(capsys.readouterr().out)["cells"]
