# SPDX-License-Identifier: Apache-2.0
"""Where a run is, seen by other processes: its live record, and `roundabout watch`."""

import io
import json
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len
from rich.console import Console

from roundabout.cli.main import main
from roundabout.cli.runs import watch
from roundabout.cli.runs.status import status_of
from roundabout.core.paths import ROOT
from roundabout.runner import progress_file
from roundabout.runner.observer import CrossTrafficUse, LinkUse
from roundabout.runner.progress_events import EndedAttempt, JobProgress, Progress, TrialProgress
from roundabout.runner.tables.rows import Samples
from roundabout.runner.trial.live_traffic import TrafficMeter
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from roundabout.terminal import run_progress as screen
from tests.deadline import wait_for

pytestmark = pytest.mark.lab

WAIT_S = 90


@pytest.fixture
def progress(tmp_path):
    return Progress(
        "tiny",
        "20260101T000000Z-0000",
        str(tmp_path),
        "2 of 4: fair, repetition 2",
        "measuring",
        trials=4,
        done=1,
        attempts=2,
        time_left_s=12.5,
        trial=TrialProgress("k1", "fair", {"variant": "fair", "load": 0.5}, 2, None, 1),
        jobs={"j1": JobProgress(50, 12, 330.5, 331.25)},
        links={"L1": LinkUse(50, 41.25, 2312.5, 120000), "s0": LinkUse(50, 20.5, None, None)},
        cross_traffic={"web": CrossTrafficUse(6, 5.5), "more": CrossTrafficUse(6, None)},
        ended=EndedAttempt(
            "fair, repetition 1", {"j1": JobProgress(50, 50, 330, 331)}, ["2 segments were sent again"], True
        ),
    )


@pytest.fixture(autouse=True)
def _no_run_of_others(monkeypatch):
    monkeypatch.setattr(progress_file, "run_on_machine", lambda: None)


def test_a_record_says_what_was_shown_and_is_gone_in_the_end(progress, tmp_path):
    with progress_file.ProgressWriter() as recorder:
        recorder.show(progress)
        assert progress_file.read(tmp_path) == progress_file.StoredProgress(progress, is_live=True)
        assert progress_file.is_running(tmp_path)
    assert progress_file.read(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_a_record_is_whole_and_alive_however_often_it_is_replaced(progress, tmp_path):
    with progress_file.ProgressWriter() as recorder:
        recorder.show(progress)

        def replace():
            for number in range(300):
                progress.what = str(number)
                recorder.show(progress)

        replacing = threading.Thread(target=replace)
        replacing.start()
        found = [progress_file.read(tmp_path) for _ in range(100)]
        replacing.join()
    assert all(progress and progress.is_live for progress in found)


def test_progress_is_written_at_once_only_when_a_trial_begins(progress, tmp_path, monkeypatch):
    now_s = 100.0
    monkeypatch.setattr(progress_file.time, "monotonic", lambda: now_s)
    with progress_file.ProgressWriter() as recorder:
        recorder.show(progress)
        progress.done = 2
        recorder.show(progress)
        assert progress_file.read(tmp_path).progress.done == 1
        progress.what = "3 of 4: fair, repetition 3"
        recorder.show(progress)
        assert progress_file.read(tmp_path).progress.done == 2
        progress.done = 3
        now_s += progress_file.PERIOD_S
        recorder.show(progress)
        assert progress_file.read(tmp_path).progress.done == 3


def test_a_record_that_could_not_be_replaced_is_no_life_after_the_run(progress, tmp_path, monkeypatch):
    with progress_file.ProgressWriter() as recorder:
        recorder.show(progress)
        with monkeypatch.context() as refusing:
            refusing.setattr(Path, "rename", Mock(side_effect=OSError(28, "No space left on device")))
            progress.what = "3 of 4: fair, repetition 3"
            recorder.show(progress)
        progress = progress_file.read(tmp_path)
        assert (progress.is_live, progress.progress.what) == (True, "2 of 4: fair, repetition 2")
    assert progress_file.read(tmp_path) is None


def test_an_unreadable_or_unwritable_progress_file_is_no_error(progress, tmp_path):
    (tmp_path / progress_file.NAME).write_text("{")
    assert progress_file.read(tmp_path) is None
    progress.path = str(tmp_path / "gone")
    with progress_file.ProgressWriter() as recorder:
        recorder.show(progress)


def test_the_run_that_has_the_machine_is_found_before_its_folder_is_there(work, monkeypatch):
    monkeypatch.undo()
    path = work.runs / "tiny" / "20260101T000000Z-0000"
    with work.runner.hold_machine("tiny", path):
        assert progress_file.run_on_machine(work.state, work.journals) == path.resolve()
    assert progress_file.run_on_machine(work.state, work.journals) is None


def test_a_run_is_watched_until_it_is_killed(work, tiny, drive):
    work.write(tiny(iterations=1, repetitions=1000))
    with subprocess.Popen(drive("start", work.folder), stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: progress_file.running_runs(work.runs), WAIT_S)
        words = [str(ROOT / "rb"), "watch", "--json", "--runs", str(work.runs)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watching:
            seen = [json.loads(watching.stdout.readline()) for _ in range(2)]
            process.kill()
            process.wait()
            *_, last = [*seen, *map(json.loads, watching.stdout)]
    assert [each["state"] for each in seen] == ["running", "running"]
    assert seen[1]["done"] + seen[1]["attempts"] >= seen[0]["done"] + seen[0]["attempts"]
    assert (seen[0]["trials"], seen[0]["experiment"]) == (1000, "tiny")
    assert (last["state"], last["planned"], watching.returncode) == ("interrupted", 1000, 1)
    assert not progress_file.read(Run.open("last", work.runs).path).is_live


def test_a_run_that_ended_is_reported_and_none_that_goes_on_is_an_error(work, capsys, monkeypatch):
    monkeypatch.setattr(watch, "undo_when_ended", lambda: None)
    monkeypatch.setattr(watch, "NICENESS", 0)
    run = Run.create(work.runs, "tiny", {"experiment": {}, "testbed": {}, "plan": []})
    with progress_file.ProgressWriter() as recorder:
        recorder.show(Progress(path=str(run.path)))
        assert status_of(run, work.state)["state"] == "running"
    (run.path / "report.html").touch()
    assert main(["watch", "last", "--runs", str(work.runs)]) == 0
    said = capsys.readouterr().out
    assert "complete: 0 of 0 trials committed" in said
    assert str(run.path / "report.html") in said
    assert main(["watch", "--runs", str(work.runs)]) == 1
    assert capsys.readouterr().err.endswith(f"the last in {work.runs} is tiny {run.id}: complete\n")
    assert main(["watch", "--runs", str(work.folder / "none")]) == 1
    assert "error: no run goes on" in capsys.readouterr().err


NAMES = st.text(min_size=1, max_size=30)
REALS = st.floats(0, 1e12)
JOBS = st.dictionaries(NAMES, st.builds(JobProgress, st.integers(1, 10**6), st.integers(0, 10**6), REALS, REALS))


@settings(max_examples=50, deadline=None)
@given(
    st.builds(
        Progress,
        path=NAMES,
        what=NAMES,
        trials=st.integers(0, 1000),
        time_left_s=REALS,
        jobs=JOBS,
        links=st.dictionaries(NAMES, st.builds(LinkUse, REALS, REALS, st.none() | REALS, st.none() | st.integers(0))),
        cross_traffic=st.dictionaries(NAMES, st.builds(CrossTrafficUse, REALS, st.none() | REALS)),
        ended=st.none() | st.builds(EndedAttempt, NAMES, JOBS, st.lists(NAMES), st.booleans()),
    ),
    st.integers(1, 250),
    st.integers(1, 60),
)
def test_every_terminal_has_room(now, width, height):
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    console.print(screen.ProgressScreen(now, titled=True))
    lines = console.file.getvalue().split("\n")[:-1]
    assert len(lines) <= max(height - 1, 1)
    assert all(cell_len(line) <= width for line in lines)


def test_the_longest_way_that_fits_is_said(progress):
    def shown(width):
        console = Console(file=io.StringIO(), width=width, height=30)
        console.print(screen.ProgressScreen(progress))
        return console.file.getvalue()

    assert "]  2 of 4: fair, repetition 2, measuring  about 12 s left" in shown(100)
    assert "link L1:  41.2 of 50 Gbit/s, 2312 ECN marks a second, queue to 120 kB" in shown(100)
    assert "again: fair, repetition 1: 2 segments were sent again" in shown(100)
    assert "j1 12/50 mean 331.2 ms\nL1 41.2 Gbit/s, 2312 ECN marks/s\n" in shown(35)
    assert "web  5.5 of 6 Gbit/s\nmore ? of 6 Gbit/s\n" in shown(25)


HEADER = "#port,before_ns,after_ns,interface,ifindex,up,tx_bytes,rx_bytes,marks,qdisc_backlog_bytes"


def port(at_s, ifindex, sent, received, more=","):
    return f"port,{at_s}000000000,0,eth0,{ifindex},1,{round(sent)},{round(received)},{more}"


def samples(*lines):
    return Samples([HEADER, *lines], "a test")


@pytest.fixture
def trial(work, tiny):
    path = work.write(
        tiny()
        .replace("factors:", "cross_traffic:\n  web: {kind: iperf, from: s1, to: [s3], load_gbps: 6}\nfactors:")
        .replace("  j2: {profile: vgg19-fig1, workers: [s1, s3]}\n", "")
    )
    return load_experiment(path).cells[0].spec


def test_links_are_seen_at_switches_and_cross_traffic_at_its_sender(trial):
    ports = tuple(SimpleNamespace(link="L1", ifindex=index) for index in (7, 8))
    site = SimpleNamespace(scale=100, dilation=10, ports=ports)
    near = samples(*(port(at, 7, 1e6 * at, 0, f"{50 * at},{3000 * at}") for at in range(3)))
    far = samples(port(0, 8, 0, 0, "0,0"), port(1, 8, 10, 0, "10,500"))
    hosts = {"s1": samples(port(0, 2, 0, 0), port(1, 2, 5e5, 0)), "s0": samples(port(0, 2, 0, 0), port(1, 2, 9e5, 0))}
    meter = TrafficMeter(trial, site, [near, far], hosts)
    links = meter.links()
    # A second of the lab's: 1 MB sent; 50 and 10 marks; 6000 bytes waited at most.
    assert links == {"L1": LinkUse(50, pytest.approx(0.8), pytest.approx(600), 60000)} | {
        "s1": LinkUse(50, pytest.approx(0.4), None, None)
    }
    assert meter.cross_traffic() == {"web": CrossTrafficUse(6, pytest.approx(0.4))}


def test_links_whose_switches_nobody_samples_are_seen_at_their_hosts(trial):
    site = SimpleNamespace(scale=1, dilation=1, ports=())
    hosts = {"s0": samples(port(0, 2, 0, 0), port(1, 2, 1e9, 2e9)), "s2": samples(port(0, 2, 0, 0))}
    meter = TrafficMeter(trial, site, [], hosts)
    assert meter.links() == {"s0": LinkUse(50, pytest.approx(16), None, None)}
    assert meter.cross_traffic() == {"web": CrossTrafficUse(6, None)}
