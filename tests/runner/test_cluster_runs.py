# SPDX-License-Identifier: Apache-2.0
"""Runs of clusters: what ends them loses nothing, and a real trace comes to its report, and stays what it was."""

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundabout.cli.main import main
from roundabout.runner.run import TIMELINE
from roundabout.spec import load_experiment
from roundabout.store import Attempt, Run, StoreError
from tests.computed_runs import RUNNER, compute_run
from tests.spec.cluster_traces.recorded_jobs import JOB, JOBS, NEVER, RUNNING, WORKERS

pytestmark = pytest.mark.unit

EXPERIMENT = """
name: small
about: Jobs come to a cluster of four
topology: dumbbell-2x2
transport: {name: dcqcn}
cluster:
  scheduler: themis
  trace: TRACE
factors:
  variant:
    themis: {}
    th-cassini: {cluster: {cassini: {}}}
    random: {cluster: {scheduler: random}}
repetitions: 1
study: {kind: cluster, baseline: themis}
"""
DRAWN = "{kind: poisson, load: 1, jobs: 4, workers: {least: 1, most: 4}, iterations: {least: 10, most: 20}}"


def written(folder: Path, trace: str = DRAWN) -> Path:
    path = folder / "small.yaml"
    path.write_text(EXPERIMENT.replace("TRACE", trace))
    return path


def started(folder: Path) -> Run:
    return compute_run(written(folder))


def files(run: Run) -> dict[Path, tuple[int, bytes]]:
    """Every committed file, its inode and its bytes."""
    return {path: (path.stat().st_ino, path.read_bytes()) for path in run.path.glob("trials/*/*")}


def found(run: Run) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """By the trial's key its timeline and its decisions; and what was measured, from each trial's own start."""
    starts_ns, stored = {}, {}
    for trial in run.trials():
        folder = run.path / "trials" / trial["trial"]
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        starts_ns[trial["trial"]] = trial["start_ns"]
        since = [event | {"controller_ns": event["controller_ns"] - trial["start_ns"]} for event in events]
        stored[trial["trial"]] = ((folder / TIMELINE).read_bytes(), since)
    rows = run.table("iterations").to_pylist()
    for row in rows:
        del row["run"], row["attempt"], row["host_ns"]
        for name in ("controller_ns", "start_ns", "compute_end_ns", "comm_end_ns"):
            row[name] -= starts_ns[row["trial"]]
    return stored, sorted(rows, key=lambda row: (row["trial"], row["job"], row["rank"], row["iteration"]))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return started(tmp_path_factory.mktemp("undisturbed"))


def resume_and_compare(folder: Path, undisturbed: Run) -> None:
    """The one trial that was committed stays as it is, and the run comes to what it would have been."""
    (run,) = Run.all(folder / "runs")
    before = files(run)
    assert len(run.trials()) == 1
    RUNNER.resume(run, load_experiment(run.manifest["which"]))
    assert before.items() <= files(run).items()
    assert found(run) == found(undisturbed)


def in_the_second(monkeypatch: pytest.MonkeyPatch, step: str, happens: Callable[[], None]) -> None:
    """Let something happen before that step of the second trial's attempt, once."""
    do, seen = getattr(Attempt, step), []

    def instead(attempt: Attempt, *args: Any, **named: Any) -> None:
        if attempt.path not in seen:
            seen.append(attempt.path)
            if len(seen) == 2:
                happens()
        do(attempt, *args, **named)

    monkeypatch.setattr(Attempt, step, instead)


@pytest.mark.parametrize("step", ["write", "write_json", "log", "commit"])
def test_an_interrupted_cluster_is_resumed_to_what_it_would_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: Run, step: str
) -> None:
    in_the_second(monkeypatch, step, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        started(tmp_path)
    resume_and_compare(tmp_path, undisturbed)


@pytest.mark.parametrize("step", [TIMELINE, "iterations.parquet"])
def test_a_cluster_run_is_completed_after_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: Run, step: str
) -> None:
    do, sync = {TIMELINE: "write_json"}.get(step, "write"), os.fsync

    def full(handle: int) -> None:
        if step in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    in_the_second(monkeypatch, do, lambda: monkeypatch.setattr(os, "fsync", full))
    with pytest.raises(StoreError, match="the disk is full") as stored:
        started(tmp_path)
    assert "roundabout resume" in str(stored.value.hint)
    monkeypatch.setattr(os, "fsync", sync)
    resume_and_compare(tmp_path, undisturbed)


def philly(folder: Path) -> Path:
    path = folder / "cluster_job_log"
    path.write_text(json.dumps([JOB | {"attempts": JOB["attempts"][:1]}, RUNNING, NEVER]))  # but for an hour of it
    return path


def lingjun(folder: Path) -> Path:
    path = folder / "job.csv"
    path.write_text(JOBS.replace("02:36", "02:27"))
    (folder / "worker.csv").write_text(WORKERS)
    return path


@pytest.mark.parametrize(
    ("kind", "lay", "jobs"),
    [
        ("philly", philly, ["application_1_1-1", "application_1_2-2"]),
        pytest.param("lingjun", lingjun, ["dlc2-1", "dlc3-2"], marks=pytest.mark.proof),
    ],
)
def test_a_real_trace_comes_to_its_report_and_is_kept_with_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, lay: Callable[[Path], Path], jobs: list[str]
) -> None:
    file, runs = lay(tmp_path), ["--runs", str(tmp_path / "runs")]
    ranges = "workers: {least: 1, most: 4}, iterations: {least: 10, most: 20}"
    path = written(tmp_path, f"{{kind: {kind}, file: {file.name}, {ranges}}}")
    assert main(["run", str(path), "--testbed", "fluid", *runs]) == 0
    assert "th-cassini" in capsys.readouterr().out
    (run,) = Run.all(tmp_path / "runs")
    timelines = [json.loads(stored) for stored, _ in found(run)[0].values()]
    assert [[each["name"] for each in stored["requests"]] for stored in timelines] == [jobs] * 3
    assert all(each["ended_s"] for stored in timelines for each in stored["jobs"])
    kept = run.manifest["experiment"]["cells"][0]["spec"]["submitted"]
    assert {each["name"] for each in kept} >= {name.rsplit("-", 1)[0] for name in jobs}

    text, before = file.read_text(), files(run)
    file.write_text(text.replace("01:11:39", "01:11:38").replace("2023/7/15 02:25", "2023/7/15 02:24"))
    assert text != file.read_text()
    assert main(["resume", *runs]) == 1
    assert "cells[0].spec.submitted[" in capsys.readouterr().err
    file.unlink()
    assert main(["resume", *runs]) == 2
    assert f"{file}: found no such file or directory" in capsys.readouterr().err
    assert files(run) == before
