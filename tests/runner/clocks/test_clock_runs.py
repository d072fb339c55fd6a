# SPDX-License-Identifier: Apache-2.0
"""Trials on hosts whose clocks are not the controller's, and on clocks that step."""

import itertools
import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from roundabout.runner.hosts import clocks
from roundabout.runner.run import Runner
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.provider import LabProvider

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

YEAR_NS = 365 * 86_400 * 10**9
NOISE = ("busy", "woke up", "took")  # a test machine may be loaded: what spoils figures must not fail tests

# Of a host whose clock jumps after two readings of eight round trips each: the session's and the trial's first.
STEPPING = """
import sys, time
for number, question in enumerate(iter(sys.stdin.readline, "")):
    step_ns = 50_000_000 if number > 17 else 0
    print("{}" if question == "sync\\n" else f"{time.monotonic_ns() + step_ns} {time.time_ns()}", flush=True)
"""


# Of a host whose UTC is years away, and maybe put right between the same two readings.
OF_ANOTHER_YEAR = """
import sys, time
for number, question in enumerate(iter(sys.stdin.readline, "")):
    away_ns = {after} if number > 17 else {before}
    print("{{}}" if question == "sync\\n" else f"{{time.monotonic_ns()}} {{time.time_ns() + away_ns}}", flush=True)
"""


@pytest.fixture
def ticking(work, monkeypatch):
    """A workplace where s1 has another clock.py."""

    def give(clock_py):
        provision = work.provider.provision

        def provision_and_replace(testbed):
            provision(testbed)
            (testbed.hosts["s1"].prefix / "bin" / "clock.py").write_text(clock_py)

        monkeypatch.setattr(work.provider, "provision", provision_and_replace)
        return work

    return give


def events(folder):
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_a_trial_whose_hosts_clock_stepped_is_invalid_and_says_so(ticking):
    run = ticking(STEPPING).start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (True, 2)
    (rejected,) = run.path.glob("rejected/*/trial.json")
    record = json.loads(rejected.read_text())
    assert record["reason"].startswith("s1: its monotonic clock stepped by +")
    (step,) = record["clock_steps"]
    assert (step["host"], step["clock"]) == ("s1", "monotonic")
    assert abs(step["by_ns"] - 50e6) <= step["explained_ns"]
    assert trial["clock_steps"] == []
    (logged,) = [event for event in events(rejected.parent) if event["event"] == "clock stepped"]
    assert logged["by_ns"] == step["by_ns"]


@pytest.mark.parametrize(("before_ns", "after_ns"), [(-20 * YEAR_NS, -20 * YEAR_NS), (-50 * YEAR_NS, 0)])
def test_a_host_whose_utc_is_years_off_is_joined_like_others(ticking, before_ns, after_ns):
    run = ticking(OF_ANOTHER_YEAR.format(before=before_ns, after=after_ns)).start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (True, 1)
    steps = [(step["host"], step["clock"]) for step in trial["clock_steps"]]
    assert steps == ([] if before_ns == after_ns else [("s1", "UTC")])
    for name in ("iterations", "counters", "clock"):
        rows = run.table(name).to_pylist()
        assert {"s0", "s1", "s2", "s3"} <= {row["host"] for row in rows}
        assert all(abs(row["controller_ns"] - trial["start_ns"]) < 60e9 for row in rows), name
    away = {row["utc_ns"] - row["controller_ns"] for row in rows if row["host"] == "s1"}
    assert min(away) == pytest.approx(before_ns, abs=1e9)
    assert max(away) == pytest.approx(after_ns, abs=1e9)


# How long a controller is stopped; it shall not take its hosts for lost. Their clocks are being read all the time.
IMPATIENT = {
    "hosts.clocks.PERIOD_S": 0.001,
    "hosts.clocks.ANSWER_TIMEOUT_S": 1,
    "hosts.deadlines.SLICE_S": 0.1,
    "trial.attempt.STALL_S": 1,
    "trial.attempt.STALL_ITERATIONS": 0,
}
SLOW = """
import sys, time
for question in iter(sys.stdin.readline, ""):
    time.sleep(0.02)
    print("{}" if question == "sync\\n" else f"{time.monotonic_ns()} {time.time_ns()}", flush=True)
"""
STOPS = [(1.3, IMPATIENT), pytest.param((120, {}), marks=pytest.mark.proof)]


@pytest.mark.parametrize("stop", STOPS)
def test_a_controller_that_was_stopped_goes_on_with_its_trial(work, tiny, drive, monkeypatch, stop):
    stopped_s, constants = stop
    monkeypatch.setenv("CONSTANTS", json.dumps(constants))
    work.provider.fault("s0", iteration_ms=50)
    (work.provider.folder / "clock.py").write_text(SLOW)
    work.write(tiny(iterations=40))
    with subprocess.Popen(drive("start", work.folder)) as process:
        deadline = time.monotonic() + 30
        while not any('"start"' in path.read_text() for path in work.runs.glob("*/*/partial/*/events.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGSTOP)
        time.sleep(stopped_s)
        process.send_signal(signal.SIGCONT)
        assert process.wait(timeout=60) == 0
    (trial,) = Run.open("last", work.runs).trials()
    assert (trial["valid"], trial["attempt"]) == (True, 1)
    assert work.provider.left == []


@pytest.mark.parametrize("by_ns", [5 * 10**9, -20 * YEAR_NS])
def test_a_step_of_the_controllers_utc_is_noted_and_moves_no_time(work, monkeypatch, by_ns):
    utc_ns = time.time_ns

    def step_while_measuring(what):
        if what == "measuring":  # after the anchor, the session's reading and the trial's first
            monkeypatch.setattr(time, "time_ns", lambda: utc_ns() + by_ns)

    monkeypatch.setattr(work.notes, "phase", step_while_measuring)
    run = work.start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (True, 1)
    (step,) = trial["clock_steps"]
    assert (step["host"], step["clock"]) == ("controller", "UTC")
    assert step["by_ns"] == pytest.approx(by_ns, abs=1e6)
    rows = [row for row in run.table("clock").to_pylist() if row["host"] == "controller"]
    assert [row["phase"] for row in rows] == ["anchor", "before", "after"]
    assert rows[-1]["utc_ns"] - rows[-1]["controller_ns"] == pytest.approx(by_ns, abs=1e6)
    assert len({row["offset_ns"] for row in rows}) == 1
    assert any(event["event"] == "clock stepped" for event in events(run.path / "trials" / trial["trial"]))


def test_clock_daemons_state_is_stored_before_and_after(work):
    run = work.start()
    rows = run.table("clock").to_pylist()
    assert {row["host"] for row in rows} == {"controller", "s0", "s1", "s2", "s3"}
    for row in rows:
        if row["phase"] in ("before", "after"):
            assert json.loads(row["sync"]).keys() == {"chrony", "ptp", "hardware_clocks"}
        else:
            assert row["sync"] is None
    (session,) = run.manifest["sessions"]
    assert session["clocks"].keys() == {row["host"] for row in rows}


def test_a_clock_that_falls_silent_during_a_trial_costs_one_attempt(work, monkeypatch):
    """Its bench is given up: it is unknown what of it still answers."""
    read = clocks.HostClock.read
    silenced = itertools.count()

    def fall_silent(clock, phase, sync=None):
        if phase == "during" and next(silenced) == 0:
            raise clocks.LostHostError("s0", "its clock did not answer within 10 s")
        return read(clock, phase, sync)

    monkeypatch.setattr(clocks, "PERIOD_S", 0.01)
    monkeypatch.setattr(clocks.HostClock, "read", fall_silent)
    run = work.start()
    assert [trial["valid"] for trial in run.trials()] == [True]
    (rejected,) = run.path.glob("rejected/*/trial.json")
    assert "lost host s0: its clock did not answer" in json.loads(rejected.read_text())["reason"]
    assert work.provider.raised == 2


class ShiftedLab(LabProvider):
    """Labs where s0's clock is a year ahead."""

    def create_hosts(self, topology, name):
        return Lab.create(topology, name, clock_shift_ns={"s0": YEAR_NS})


@pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")
@pytest.mark.proof
def test_a_years_shift_of_a_host_moves_no_joined_time(work, tiny, monkeypatch):
    monkeypatch.setattr(clocks, "PERIOD_S", 0.5)
    path = work.write(tiny(iterations=4))
    run = Runner(ShiftedLab(), work.notes, undo).start(load_experiment(path), str(path), work.runs)
    (trial,) = run.trials()
    assert all(any(word in reason for word in NOISE) for reason in trial["reason"].split("; ") if reason)
    assert trial["clock_steps"] == []

    # One kernel: what the run's clock showed is known exactly, and every row must be right within its own bound.
    anchor = run.manifest["clock"]
    offset_ns = anchor["anchor_utc_ns"] - anchor["anchor_monotonic_ns"]
    for name in ("iterations", "counters", "clock", "flows", "reactions"):
        table = run.table(name, valid_only=False)
        host, host_ns, run_ns, bound_ns = (
            table[column].to_numpy() for column in ("host", "host_ns", "controller_ns", "offset_bound_ns")
        )
        shift_ns = np.where(host == "s0", YEAR_NS, 0)
        assert {"s0", "s1", "s2", "s3"} <= set(host), name
        assert (np.abs(run_ns - (host_ns - shift_ns + offset_ns)) <= bound_ns).all(), name
        assert (bound_ns[host != "controller"] > 0).all() and bound_ns.max() < 20e6, name

    starts = {
        row["host"]: row["start_ns"] - trial["start_ns"]
        for row in run.table("iterations", valid_only=False).to_pylist()
        if row["iteration"] == 0
    }
    assert starts.keys() == {"s0", "s1", "s2", "s3"}
    assert all(-20e6 < late < 50e6 for late in starts.values()), starts
    phases = run.table("clock", valid_only=False)["phase"].to_pylist()
    assert {"before", "during", "after"} <= set(phases)
