# SPDX-License-Identifier: Apache-2.0
"""Whole runs in a real lab: from the command line to the summary, and back to an untouched machine."""

import json
import os
import signal
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from analysis.reading.congestion.marks import per_iteration
from analysis.reading.data import filter_rows
from roundabout.api import run_experiment
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.runner.machine.state import STATE
from roundabout.spec import load_experiment
from roundabout.store import Run
from roundabout.testbeds.lab import Lab
from tests.deadline import wait_for
from tests.fakes.workplace import experiment
from tests.runner.interruptions import interruption_points
from tests.traces import traces

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

EVENTS = "runs/*/*/partial/*/events.jsonl"
LABS = "labs/*/lab.json"
ROUNDABOUT = [sys.executable, "-m", "roundabout.cli.main"]
ROOT = Path(__file__).parents[2]
VARIANTS = "alone: {one_job_at_a_time: true}, fair: {}, unfair: {jobs: {j1: {transport: {T_us: 100}}}}"
# A test machine may be loaded: what spoils figures must not fail tests.
NOISE = ("woke up", "took", "stood still", "for want of CPU", "dropped", "sent again")
# Takes one CPU from everything but the kernel's own, trainers included, for 30 of 40 ms, until its input closes.
HOG = """
import os, select, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
while not select.select([sys.stdin], [], [], 0.01)[0]:
    until = time.monotonic() + 0.03
    while time.monotonic() < until:
        pass
"""


def roundabout(*words, folder, check=True):
    done = subprocess.run(
        [*ROUNDABOUT, *map(str, words)], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    assert not check or done.returncode == 0, done.stderr
    return done


def environment():
    return os.environ | {"PYTHONPATH": str(ROOT)}


def start(folder, file):
    return subprocess.Popen(
        [*ROUNDABOUT, "run", str(file), "--testbed", "lab", "--json"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def file(tmp_path, tiny):
    path = tmp_path / "tiny.yaml"
    path.write_text(tiny(iterations=3, variants=VARIANTS))
    return path


@pytest.fixture
def untouched():
    """The machine as it was before the test; what is new must go within seconds."""
    before = traces()
    yield
    wait_for(lambda: not (traces() - before), 15)


def committed(folder):
    return list(folder.glob("runs/*/*/trials/*/trial.json"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder in which one command ran an experiment on packets and in the lab, and what the command printed."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(experiment(iterations=2, variants=VARIANTS))
    before = traces()
    done = roundabout("run", folder / "tiny.yaml", "--json", folder=folder)
    wait_for(lambda: not (traces() - before), 15)
    return folder, done.stdout


@pytest.fixture(scope="module")
def lab_run(finished):
    return Run.open("last", finished[0] / "runs")


def test_an_experiment_runs_from_its_file_to_its_summary(finished, lab_run):
    summary, run = json.loads(finished[1]), lab_run
    assert summary["run"] == run.id
    assert summary["testbed"]["kind"] == "lab"
    assert json.loads((run.path / "summary.json").read_text()) == summary
    assert (run.path / "report.html").stat().st_size > 10_000
    trials = run.trials()
    assert sorted(trial["variant"] for trial in trials) == ["alone", "alone", "fair", "unfair"]
    for trial in trials:
        assert all(any(word in reason for word in NOISE) for reason in trial["reason"].split("; ") if reason)
    iterations = run.table("iterations", valid_only=False)
    assert iterations.num_rows == 2 * 2 * 2 + 2 * 4 * 2
    sent = 574_680_000
    assert all(abs(each - sent) < 1000 for each in iterations["sent_bytes"].to_pylist())
    assert set(run.table("queue", valid_only=False)["link"].to_pylist()) >= {"L1"}
    assert set(run.table("reactions", valid_only=False)["counter"].to_pylist()) >= {"cnps", "acks"}
    assert_hosts_were_sampled(run)
    (session,) = run.manifest["sessions"]
    assert session["hosts"]["s0"]["kernel"]
    unfair = next(trial for trial in trials if trial["variant"] == "unfair")
    timers = {host: each["after"]["transport"]["dcqcn"]["T_us"] for host, each in unfair["settings"].items()}
    assert timers["s0"] == timers["s2"] == pytest.approx(0.8 * timers["s1"], rel=1e-3)
    assert_marks_add_up(run)


def test_the_default_ends_with_packets_and_the_lab_on_one_page(finished):
    folder = finished[0]
    runs = {run.manifest["testbed"]["kind"]: run for run in Run.all(folder / "runs")}
    assert set(runs) == {"packets", "lab"}
    assert runs["packets"].id < runs["lab"].id
    assert all((run.path / "report.html").exists() for run in runs.values())
    page = (folder / "runs/tiny/testbeds.html").read_text()
    stamps = [run.manifest["testbed"]["fidelity"]["stamp"] for run in runs.values()]
    assert all(f"{stamp}</span>" in page for stamp in stamps)


def assert_hosts_were_sampled(run):
    """The reaction point's counters came at every sample, and what they gained is what the transport itself says."""
    for trial in run.trials():
        if trial["job"] == "j2":
            assert trial["settings"]["s0"]["applied"] == {}  # it has no part in that trial
            continue
        place = {"trial": trial["trial"], "host": "s0"}
        sampling = trial["sampling"]["s0"]
        assert sampling["lost_lines"] == 0
        rows = filter_rows(run.table("device_counters"), **place, counter="segments")
        assert rows.num_rows == sampling["samples"]
        (reaction,) = filter_rows(run.table("reactions"), **place, counter="segments").to_pylist()
        values = rows["value"].to_pylist()
        assert reaction["before"] <= values[0]  # workers may be quicker than the first sample
        assert values[-1] == reaction["after"]
        assert values[-1] > values[0]
        assert set(filter_rows(run.table("device_counters"), **place, counter="up")["value"].to_pylist()) == {1}


def forgiven(run):
    """The run, as if no loaded machine had spoilt its figures."""
    for path in run.path.glob("trials/*/trial.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "valid": True}))
    return run


def assert_marks_add_up(run):
    """Each mark of each port is in an iteration of the job that sent the packet, or unattributed."""
    marks = per_iteration(forgiven(run))
    for port in marks.ports.to_pylist():
        place = {name: port[name] for name in ("trial", "link", "towards")}
        seen = filter_rows(run.table("queue"), **place)["marks"].to_pylist()
        counts = filter_rows(marks.iterations, **place)["count"].to_pylist()
        assert None not in counts
        assert sum(counts) + port["outside"] + port["no_job"] + port["no_source"] == max(seen) - min(seen)
        assert port["no_job"] == 0
        assert abs(port["no_source"]) <= 0.01 * port["gained"]
    shared = [row for row in marks.ports.to_pylist() if row["link"] == "L1"]
    assert sum(row["gained"] for row in shared) > 0


@pytest.mark.proof
def test_after_sigkill_clean_leaves_nothing_and_resume_finishes(tmp_path, file, tiny, untouched):
    file.write_text(tiny(iterations=3, repetitions=2))
    bystander = process_name("bystander")
    roundabout("lab", "up", "dumbbell-2x2", "--name", bystander, folder=tmp_path)
    try:
        before = traces()
        with start(tmp_path, file) as process:
            wait_for(lambda: committed(tmp_path))
            process.kill()
        kept = {path: (path.stat().st_ino, path.read_bytes()) for path in committed(tmp_path)}
        assert "interrupted" in roundabout("status", folder=tmp_path).stdout
        cleaned = roundabout("clean", folder=tmp_path)
        assert "testbed" in cleaned.stdout
        wait_for(lambda: not (traces() - before), 15)
        assert {trace for trace in before - traces() if bystander in trace} == set()
        Lab.open(bystander)
        assert "nothing to undo" in roundabout("clean", folder=tmp_path).stdout
        roundabout("resume", folder=tmp_path)
        assert len(committed(tmp_path)) == 2
        assert {path: (path.stat().st_ino, path.read_bytes()) for path in kept} == kept
        assert "complete: 2 of 2" in roundabout("status", folder=tmp_path).stdout
    finally:
        roundabout("lab", "down", bystander, folder=tmp_path)


@pytest.mark.parametrize("moment", ["while the lab is raised", pytest.param("during a trial", marks=pytest.mark.proof)])
def test_ctrl_c_leaves_nothing(tmp_path, file, untouched, moment):
    labs_of_others = set(STATE.glob(LABS))
    with start(tmp_path, file) as process:
        if moment == "during a trial":
            wait_for(lambda: list(tmp_path.glob(EVENTS)))
        else:
            wait_for(lambda: set(STATE.glob(LABS)) - labs_of_others)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr


@pytest.mark.proof
def test_a_host_that_dies_costs_one_attempt(tmp_path, file, tiny, untouched):
    file.write_text(tiny(iterations=3))
    with start(tmp_path, file) as process:
        wait_for(lambda: list(tmp_path.glob(EVENTS)))
        (run,) = Run.all(tmp_path / "runs")
        wait_for(lambda: any('"start"' in path.read_text() for path in run.path.glob("partial/*/events.jsonl")))
        lab = Lab.open(run.id.lower())
        os.kill(lab.pids()["s2"], signal.SIGKILL)
        _, stderr = process.communicate(timeout=180)
    assert process.returncode == 0, stderr
    reasons = [json.loads(path.read_text())["reason"] for path in run.path.glob("rejected/*/trial.json")]
    assert any("lost host s2" in reason for reason in reasons), reasons
    assert len(run.trials()) == 1


@pytest.mark.proof
def test_a_job_alone_in_a_dilated_lab_takes_its_profiles_time(tmp_path, file, tiny, untouched):
    file.write_text(tiny(iterations=3, variants="alone: {one_job_at_a_time: true}"))
    run = run_experiment(load_experiment(file), dilation=5, runs=tmp_path / "runs", quiet=True)
    profile = load_experiment(file).cells[0].spec.jobs["j1"].profile
    lasted_ms = [row["iteration_ms"] for row in run.table("iterations", valid_only=False).to_pylist()]
    assert statistics.median(lasted_ms) == pytest.approx(profile.alone_ms, rel=0.02)
    (alone,) = [trial for trial in run.trials() if trial["job"] == "j1"]
    assert alone["settings"]["s0"]["after"]["route"] == {"10.77.0.0/16": {"rto_min_ms": 1000}}
    assert "time stretched 5 times, a packet for 20" in run.manifest["testbed"]["fidelity"]["stamp"]


def test_jobs_alone_are_not_marked_as_together(lab_run):
    trials = {trial["trial"]: trial["variant"] for trial in lab_run.trials()}
    found = dict.fromkeys(trials.values(), 0)
    for (trial, _, _), marks in gained(lab_run).items():
        found[trials[trial]] += marks
    # None on a quiet machine; where a CPU stands still for a moment, queues grow behind it, but not in all iterations.
    assert found["alone"] <= found["fair"] / 5
    in_iteration = {}
    for row in per_iteration(forgiven(lab_run)).iterations.to_pylist():
        if trials[row["trial"]] == "alone":
            in_iteration.setdefault((row["trial"], row["iteration"]), []).append(row["count"])
    assert any(all(count == 0 for count in counts) for counts in in_iteration.values())


def gained(run):
    """By how much each port's marks grew, by trial, link and where it leads."""
    seen = {}
    for row in run.table("queue", valid_only=False).to_pylist():
        seen.setdefault((row["trial"], row["link"], row["towards"]), []).append(row["marks"])
    return {port: max(marks) - min(marks) for port, marks in seen.items()}


def test_the_second_of_two_runs_waits(tmp_path, file, tiny, untouched):
    file.write_text(tiny(iterations=3, repetitions=20))
    labs_of_others = set(STATE.glob(LABS))
    with start(tmp_path, file) as process:
        wait_for(lambda: set(STATE.glob(LABS)) - labs_of_others)
        with start(tmp_path, file) as second:
            line = next(each for each in second.stderr if "waiting" in each)
            second.send_signal(signal.SIGINT)
            _, stderr = second.communicate(timeout=30)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 143
    assert second.returncode == 130, stderr
    assert "waiting up to 60 min for the machine, which is leased to tiny" in line
    assert f"pid {process.pid}" in line


@pytest.fixture
def starved():
    """Starts programs that take the CPUs away, and ends them; called a second time, it ends them at once."""
    with ExitStack() as hogs:

        def starve():
            for cpu in os.sched_getaffinity(0):
                hog = subprocess.Popen([sys.executable, "-c", HOG, str(cpu)], stdin=subprocess.PIPE)
                hogs.callback(hog.wait)
                hogs.callback(hog.stdin.close)

        yield starve, hogs.close


@pytest.mark.proof
def test_a_trial_whose_trainers_were_starved_of_cpu_is_caught(tmp_path, tiny, untouched, starved):
    starve, feed = starved
    file = tmp_path / "tiny.yaml"
    file.write_text(tiny(iterations=10))
    with start(tmp_path, file) as process:
        wait_for(lambda: '"start"' in "".join(each.read_text() for each in tmp_path.glob(EVENTS)))
        starve()
        wait_for(lambda: rejected(tmp_path))
        feed()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143
    # Links starve with their senders: where few trainers woke up late, it is the link that is found.
    assert all("trainers woke up" in reason or "a link stood still" in reason for reason in rejected(tmp_path))


def rejected(folder):
    """Why attempts in this folder do not count."""
    return [json.loads(path.read_text())["reason"] for path in folder.glob("runs/*/*/rejected/*/trial.json")]


KILLED = 14
COUNTED = {}


def interrupted(folder, file, signals):
    """The points that a run came to which got these signals at some of them; 0 where it did not come to its end."""
    words = [
        sys.executable,
        "-m",
        "tests.runner.interruptions.interrupted_command",
        json.dumps(signals),
        folder / "count",
    ]
    words += ["run", file, "--testbed", "lab"]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    return int((folder / "count").read_text()) if (folder / "count").exists() else 0


@pytest.mark.proof
@pytest.mark.parametrize("number", range(KILLED))
def test_a_lab_run_interrupted_anywhere_loses_and_leaves_nothing(tmp_path, tiny, untouched, number):
    file = tmp_path / "tiny.yaml"
    file.write_text(tiny(iterations=2, variants="alone: {one_job_at_a_time: true, iterations: 2}"))
    if not COUNTED:
        whole = tmp_path / "whole"
        whole.mkdir()
        COUNTED["points"] = interrupted(whole, file, {})
        COUNTED["keys"] = {path.parent.name for path in committed(whole)}
        print(f"{COUNTED['points']} points")
    way = list(interruption_points.WAYS.values())[number % len(interruption_points.WAYS)]
    point = 1 + number * COUNTED["points"] // KILLED
    interrupted(tmp_path, file, {point + after: signal_ for after, signal_ in way})
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in committed(tmp_path)}
    begun = bool(Run.all(tmp_path / "runs"))
    order = interruption_points.ORDERS[number % len(interruption_points.ORDERS)] if begun else ("resume", "clean")
    for word in order:
        words = {"run": ["run", file, "--testbed", "lab"]}.get(word, [word])
        done = roundabout(*words, folder=tmp_path, check=word != "resume" or begun)
        assert "bug" not in done.stderr
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in before} == before
    runs = Run.all(tmp_path / "runs")
    assert all({trial["trial"] for trial in run.trials()} <= COUNTED["keys"] for run in runs)
    newest = max(runs, key=lambda run: run.id, default=None)
    assert order[-1] == "clean" or {trial["trial"] for trial in newest.trials()} == COUNTED["keys"]
