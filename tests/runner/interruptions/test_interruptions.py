# SPDX-License-Identifier: Apache-2.0
"""Whatever ends a runner: what was committed stays, what was made is undone, and the rest can be finished."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import pyarrow.parquet as pq
import pytest

from roundabout.cli.runs import clean
from roundabout.cli.runs.status import status_of
from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.machine_lease import BusyError
from roundabout.store import Run
from tests.deadline import wait_for

pytestmark = pytest.mark.unit

VARIANTS = "alone: {one_job_at_a_time: true, iterations: 1}"  # two trials, one a job


@pytest.fixture
def file(work, tiny):
    return work.write(tiny(iterations=1, variants=VARIANTS))


@pytest.fixture
def killed(work, tiny, drive):
    """What a run leaves that is killed during its second trial."""
    work.write(tiny(iterations=1, variants=VARIANTS, repetitions=2))
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: list(work.runs.glob("*/*/trials/*/trial.json")) and work.provider.left, 90)
        process.kill()
    (run,) = Run.all(work.runs)
    assert status_of(run, work.state)["state"] == "interrupted"
    assert work.has_leftovers
    return run


def contents(run):
    """Every committed file with its bytes and its inode."""
    return {path: (path.stat().st_ino, path.read_bytes()) for path in run.path.glob("trials/*/*")}


@pytest.mark.parametrize("next_", ["resume", "start", "clean"])
def test_the_next_command_undoes_what_a_killed_run_left(work, killed, next_):
    before = contents(killed)
    {"resume": work.resume, "start": work.start, "clean": work.clean}[next_]()
    assert not work.has_leftovers
    assert f"undoing what run {killed.id} left: folder, settings, testbed, transport" in work.notes.steps
    assert work.resume().id == max(run.id for run in Run.all(work.runs))
    after = contents(killed)
    assert {path: after[path] for path in before} == before
    assert (len(killed.trials()) == 4) is (next_ != "start")


@pytest.mark.parametrize("next_", ["resume", "start"])
def test_the_next_command_names_the_run_whose_undo_failed(work, killed, next_, monkeypatch):
    def refuses(_entry):
        raise RoundaboutError("s0 refuses", "mend it")

    entries, left = sorted(work.journals.glob("*")), work.provider.left
    monkeypatch.setattr(work.provider, "undo", refuses)
    with pytest.raises(RoundaboutError, match=f"^run {killed.id}: s0 refuses$") as reported:
        getattr(work, next_)()
    assert reported.value.hint == "mend it"
    assert (sorted(work.journals.glob("*")), work.provider.left) == (entries, left)
    assert not work.state.exists()


def test_another_testbeds_leftovers_only_warn_and_the_run_starts(work):
    def refuses(_entry):
        raise RoundaboutError("lost host s0", "roundabout clean")

    work.journals.mkdir(parents=True)
    content = {"run": "runs/x/run1", "pending": [{"kind": "settings", "where": {"testbed": "rack"}}]}
    (work.journals / "run1.json").write_text(json.dumps(content))
    work.undo = refuses
    assert len(work.start().trials()) == 1
    assert "run run1: lost host s0; roundabout clean" in work.notes.steps
    assert [path.name for path in work.journals.iterdir()] == ["run1.json"]


def test_a_second_signal_leaves_no_committed_trial_unlisted(work, monkeypatch):
    """The first comes after a trial's commit and before its row, the second while the row is made up for."""
    refresh, calls = Run.refresh_trials, []

    def signalled(run):
        calls.append(run)
        if len(calls) == 1:
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGTERM)
        refresh(run)

    def stop(*_signal):
        raise SystemExit

    monkeypatch.setattr(Run, "refresh_trials", signalled)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            work.start()
    finally:
        signal.signal(signal.SIGTERM, before)
    (run,) = Run.all(work.runs)
    assert len(calls) == 2
    assert pq.read_table(run.path / "trials.parquet").num_rows == 1
    assert not work.has_leftovers


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
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
    # -number: all was undone when the second one came; SIGTERM: the first one came in a destructor, and so again.
    assert process.returncode in (status, -number, 128 + signal.SIGTERM, -signal.SIGTERM), stderr
    assert "Traceback" not in stderr
    assert not work.has_leftovers
    (run,) = Run.all(work.runs)
    reported = status_of(run, work.state)
    assert reported["state"] == "interrupted"
    assert 2 <= reported["committed"] < 40
    assert pq.read_table(run.path / "trials.parquet").num_rows == reported["committed"]
    assert len(run.interrupted_attempts()) <= 1


@pytest.fixture
def frozen(work):
    """What is to be undone does not answer until this file is gone."""
    path = work.provider.folder / "frozen"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_ctrl_c_once_more_says_what_is_left_and_ends(work, file, drive, frozen):
    with subprocess.Popen(
        drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: len(list(work.runs.glob("*/*/trials/*/trial.json"))) == 1)
        process.send_signal(signal.SIGINT)
        wait_for((frozen.parent / "undoing").exists)
        process.send_signal(signal.SIGTERM)  # it is ending already
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "undoing what the run set on hosts; finished trials stay" in stdout
    assert "not cleaned up: folder, settings, testbed, transport" in stdout
    assert "Traceback" not in stderr
    assert work.provider.left
    frozen.unlink()
    work.clean()
    assert not work.has_leftovers
    assert [trial["valid"] for trial in work.resume().trials()] == [True, True]


def test_the_first_ctrl_c_does_not_cut_short_what_a_run_undoes_at_its_end(work, file, drive, frozen):
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.PIPE) as process:
        wait_for((frozen.parent / "undoing").exists)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        frozen.unlink()
        assert process.wait(timeout=10) == 0
    assert not work.has_leftovers


DESTROYED = """
import os, signal, time
from roundabout.terminal.execution import undo_when_ended
class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGHUP)
undo_when_ended()
Destroyed()
try:
    time.sleep(10)
finally:
    print("undone")
"""


def test_a_signal_that_comes_in_a_destructor_is_not_lost():
    done = subprocess.run([sys.executable, "-c", DESTROYED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (143, "undone\n", "")


def test_a_terminal_that_hangs_up_ends_a_run_like_ctrl_c(work, tiny, drive):
    work.write(tiny(iterations=1, variants=VARIANTS, repetitions=20))
    ours, theirs = os.openpty()
    crashes = work.folder / "crashes"
    crashes.mkdir()
    on_terminal = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "env": os.environ | {"TMPDIR": str(crashes)}}
    with subprocess.Popen(["setsid", "--ctty", *drive("start", work.folder)], **on_terminal) as process:
        os.close(theirs)
        wait_for(lambda: list(work.runs.glob("*/*/trials/*/trial.json")))
        os.close(ours)
        assert process.wait(30) == 129
    assert not work.has_leftovers
    assert list(crashes.iterdir()) == []


def test_a_run_goes_on_without_a_reader_of_its_output_and_under_nohup(work, tiny, drive):
    work.write(tiny(iterations=1, variants=VARIANTS, repetitions=2))
    with subprocess.Popen(
        ["nohup", *drive("start", work.folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        process.stdout.close()
        wait_for(lambda: list(work.runs.glob("*/*/trials/*/trial.json")))
        process.send_signal(signal.SIGHUP)
        assert process.wait(30) == 0
    (run,) = Run.all(work.runs)
    assert len(run.trials()) == 4


def test_no_program_outlives_a_killed_runner(work, tiny, drive):
    work.provider.fault("s0", iteration_ms=20_000)
    work.write(tiny())
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: len(programs_below(work.folder)) >= 4 + 4 + 3 + 4)
        process.kill()
    wait_for(lambda: not programs_below(work.folder))


@pytest.fixture
def no_scratch(tmp_path, monkeypatch):
    """Temporary folders and crash logs of other tests, which `clean` would remove and name, are out of its sight."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.usefixtures("no_scratch")
def test_a_live_run_is_not_cleaned_up(work, tiny, drive, monkeypatch, capsys):
    work.write(tiny(variants=VARIANTS, repetitions=20))
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: work.provider.left)
        with pytest.raises(BusyError, match="leased to tiny"):
            work.clean()
        monkeypatch.setattr(clean, "STATE", work.state)
        monkeypatch.setattr(clean, "JOURNALS", work.journals)
        clean.command()
        assert capsys.readouterr().out == "nothing to undo\n"
        assert work.provider.left
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert not work.has_leftovers


@pytest.mark.usefixtures("no_scratch")
def test_the_second_of_two_cleans_waits_and_finds_nothing(work, monkeypatch, capsys):
    begun, may_end, undone = Event(), Event(), []

    def undo(entry):
        begun.set()
        may_end.wait(30)
        undone.append(entry["kind"])

    for name, value in (("STATE", work.state), ("JOURNALS", work.journals), ("undo", undo)):
        monkeypatch.setattr(clean, name, value)
    work.journals.mkdir(parents=True)
    (work.journals / "run1.json").write_text(json.dumps({"run": "runs/x/run1", "pending": [{"kind": "settings"}]}))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(clean.command)
        begun.wait(30)
        second = pool.submit(clean.command)
        Timer(0.3, may_end.set).start()
        first.result(), second.result()
    assert undone == ["settings"]
    assert capsys.readouterr().out == "undoing what run run1 left: settings\nnothing to undo\n"
    assert not work.has_leftovers


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_one_message_and_committed_trials_stay(work, tiny):
    work.runs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", work.runs], check=True)
    try:
        with pytest.raises(Exception, match="the disk is full") as full:
            work.start(tiny(iterations=1, variants=VARIANTS, repetitions=20))
        assert "roundabout resume" in full.value.hint
        assert not work.has_leftovers
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
