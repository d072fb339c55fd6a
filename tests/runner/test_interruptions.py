# SPDX-License-Identifier: Apache-2.0
"""Whatever ends a runner: what was committed stays, what was made is undone, and the rest can be finished."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from roundabout.cli.status import status_of
from roundabout.runner.machine import journal, lease
from roundabout.store import Run

RENAMES = 23  # in a run of these two trials
VARIANTS = "alone: {one_job_at_a_time: true, iterations: 1}"  # two trials, one a job


@pytest.fixture
def file(work, tiny):
    return work.write(tiny(iterations=1, variants=VARIANTS))


def contents(run):
    """Every committed file with its bytes and its inode."""
    paths = sorted(path for path in run.path.glob("trials/*/*"))
    return {path: (path.stat().st_ino, path.read_bytes()) for path in paths}


def clean(work):
    """What `roundabout clean` does."""
    for run_id in journal.dead(work.state):
        journal.settle(run_id, work.state, work.facility.undo)
    lease.remove_stale(work.state)


@pytest.mark.parametrize("kill_at", range(1, RENAMES + 1))
def test_killed_before_any_rename_a_run_can_be_cleaned_up_and_resumed(work, file, drive, kill_at):
    words = drive("start", work.folder, kill_at)
    temporary = os.environ | {"TMPDIR": str(work.folder)}
    killed = subprocess.run(words, env=temporary, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in killed.stderr
    runs = Run.all(work.runs)
    before = contents(runs[0]) if runs else {}
    assert killed.returncode == -signal.SIGKILL
    clean(work)
    assert work.facility.left == []
    assert not work.state.exists()
    assert list(work.folder.glob("roundabout-*")) == []
    if not runs:
        return
    assert status_of(runs[0], work.state)["state"] in ("interrupted", "complete")
    run = work.resume()
    assert [trial["valid"] for trial in run.trials()] == [True, True]
    assert run.table("trials").num_rows == 2
    after = contents(run)
    assert {path: after[path] for path in before} == before
    assert status_of(run, work.state)["state"] == "complete"


def test_the_range_above_covers_a_whole_run(work, file, drive):
    whole = subprocess.run(drive("start", work.folder), capture_output=True, text=True, check=True, timeout=60)
    assert int(whole.stdout) == RENAMES


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_undoes_all_and_keeps_what_is_committed(work, tiny, drive, number, status):
    work.write(tiny(iterations=1, variants=VARIANTS, repetitions=20))
    with subprocess.Popen(
        drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: len(list(work.runs.glob("*/*/trials/*/trial.json"))) >= 2)
        process.send_signal(number)
        time.sleep(0.05)
        if number == signal.SIGTERM:
            process.send_signal(number)  # which must not cut the undoing short
        _, stderr = process.communicate(timeout=30)
    assert process.returncode in (status, -number), stderr  # -number: all was undone when the second one came
    assert "Traceback" not in stderr
    assert work.facility.left == []
    assert not work.state.exists()
    (run,) = Run.all(work.runs)
    told = status_of(run, work.state)
    assert told["state"] == "interrupted"
    assert 2 <= told["committed"] < 40
    assert pq.read_table(run.path / "trials.parquet").num_rows == told["committed"]
    assert len(run.interrupted()) <= 1


@pytest.fixture
def frozen(work):
    """What is to be undone does not answer until this file is gone."""
    path = work.facility.folder / "frozen"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_ctrl_c_once_more_says_what_stays_owed_and_ends(work, file, drive, frozen):
    with subprocess.Popen(
        drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: len(list(work.runs.glob("*/*/trials/*/trial.json"))) == 1)
        process.send_signal(signal.SIGINT)
        wait_for((frozen.parent / "undoing").exists)
        process.send_signal(signal.SIGTERM)  # it is ending already
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "left: folder settings testbed transport" in stderr
    assert "Traceback" not in stderr
    assert work.facility.left
    frozen.unlink()
    clean(work)
    assert work.facility.left == []
    assert not work.state.exists()
    assert [trial["valid"] for trial in work.resume().trials()] == [True, True]


def test_the_first_ctrl_c_does_not_cut_short_what_a_run_undoes_at_its_end(work, file, drive, frozen):
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.PIPE) as process:
        wait_for((frozen.parent / "undoing").exists)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        frozen.unlink()
        assert process.wait(timeout=10) == 0
    assert work.facility.left == []
    assert not work.state.exists()


def test_no_program_outlives_a_killed_runner(work, tiny, drive):
    work.facility.fault("s0", iteration_ms=20_000)
    work.write(tiny())
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: len(programs_below(work.folder)) >= 4 + 4 + 3 + 4)
        process.kill()
    wait_for(lambda: not programs_below(work.folder))


def test_a_live_run_is_not_cleaned_up(work, tiny, drive):
    work.write(tiny(variants=VARIANTS, repetitions=20))
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: work.facility.left)
        assert journal.dead(work.state) == {}
        assert lease.remove_stale(work.state) == []
        (run_id,) = journal.live(work.state)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert run_id in {run.id for run in Run.all(work.runs)} | {run_id}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_one_message_and_committed_trials_stay(work, tiny):
    work.runs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", work.runs], check=True)
    try:
        with pytest.raises(Exception, match="the disk is full") as full:
            work.start(tiny(iterations=1, variants=VARIANTS, repetitions=20))
        assert "roundabout resume" in full.value.hint
        assert work.facility.left == []
        assert not work.state.exists()
        (run,) = Run.all(work.runs)
        assert all(trial["valid"] for trial in run.trials())
        assert run.table("iterations").num_rows == 2 * len(run.trials()) > 0
    finally:
        subprocess.run(["umount", work.runs], check=True)


def programs_below(folder: Path):
    """Processes that were started with a path below `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        if any(word.startswith(str(folder / "fake")) for word in words):
            found.append(words)
    return found


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
