# SPDX-License-Identifier: Apache-2.0
"""After a power cut at any step, a trial is there as a whole or not at all, and none whose commit returned is lost."""

import shutil
from pathlib import Path

import pytest

from analysis.reports.summary import summarize_run
from roundabout.runner.run import Runner
from roundabout.runner.tables.packets import open_parquet
from roundabout.spec import load_experiment
from roundabout.store import RAW, Attempt, Run, StoreError, files, schemas
from roundabout.testbeds import undo
from roundabout.testbeds.fluid.provider import FluidProvider
from tests.observers import Silent
from tests.store.power import EXPERIMENT, cut_at_every_step
from tests.store.written_runs import make, record, write_flow

pytestmark = pytest.mark.unit


class Committed:
    """Keys of the trials whose commit returned."""

    def __init__(self, monkeypatch):
        self.keys = set()
        commit = Attempt.commit

        def commit_with_power(attempt, record):
            commit(attempt, record)
            self.keys.add(attempt.key)

        monkeypatch.setattr(Attempt, "commit", commit_with_power)

    def are_whole(self, left: Path) -> Run | None:
        """All of them, in what a power cut left; and whatever else is there."""
        runs = Run.all(left)
        if not runs:
            assert not self.keys
            return None
        (run,) = runs
        run.check()
        assert self.keys <= run.committed()
        assert all(len(list((run.path / "trials" / key).rglob("*.*"))) >= 2 for key in run.committed())
        return run


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def begun(run, key):
    """An attempt with a file of every kind."""
    attempt = run.begin_attempt(key)
    write_flow(attempt)
    attempt.log("start", 5)
    raw = files.make_directory(attempt.path / RAW / "s0")
    with files.create_file(raw / "0.pcap") as file:
        file.write(b"packets")
    with open_parquet(attempt.path / "packets.parquet", schemas.schema("packets")):
        pass
    return attempt


def test_all_of_a_trial_is_on_disk_at_its_commit(disk, tmp_path, monkeypatch):
    committed = Committed(monkeypatch)
    with cut_at_every_step(disk, tmp_path, committed.are_whole) as cuts:
        run = make(disk)
        begun(run, "k1").reject(record(run, "k1", 1, valid=False))
        for key, number in (("k1", 2), ("k2", 1)):
            begun(run, key).commit(record(run, key, number))
        run.drop_raw(0)
    assert len(cuts) > 200
    assert committed.keys == {"k1", "k2"}


def runner(state):
    return Runner(FluidProvider(), Silent(), undo, state)


def found(run):
    """What its study finds, but for the run's name."""
    return summarize_run(run).record() | {"run": None}


def test_a_trial_that_is_lost_is_measured_again(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(EXPERIMENT)
    experiment = load_experiment(path)
    run = runner(tmp_path / "state").start(experiment, str(path), tmp_path / "runs")
    expected = found(run)
    shutil.rmtree(next(run.path.glob("trials/*")))
    with pytest.raises(StoreError, match="is missing"):
        run.check()
    assert found(runner(tmp_path / "state").resume(run, experiment)) == expected


@pytest.mark.proof
def test_a_run_can_be_finished_after_a_power_cut_anywhere(disk, tmp_path, monkeypatch):
    path = tmp_path / "tiny.yaml"
    path.write_text(EXPERIMENT)
    experiment = load_experiment(path)
    expected = found(runner(tmp_path / "state").start(experiment, str(path), tmp_path / "undisturbed"))
    committed = Committed(monkeypatch)
    resumed = []

    def look(left):
        if run := committed.are_whole(left):
            keys = set(committed.keys)
            finished = runner(tmp_path / "state").resume(run, experiment)
            assert found(finished) == expected
            committed.keys.clear()
            committed.keys.update(keys)
            resumed.append(run.committed())

    with cut_at_every_step(disk, tmp_path, look) as cuts:
        runner(tmp_path / "state").start(experiment, str(path), disk)
    assert len(cuts) > 150
    assert len(resumed) > 100
    shutil.rmtree(disk)
