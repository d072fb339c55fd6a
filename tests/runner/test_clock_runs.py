# SPDX-License-Identifier: Apache-2.0
"""Trials on hosts whose clocks are not the controller's, and on clocks that step."""

import itertools
import json
import os

import numpy as np
import pytest

from roundabout.runner.hosts import clocks
from roundabout.runner.run import Runner
from roundabout.spec.load import load_experiment
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.facility import LabFacility

HOUR_NS = 3600 * 10**9
NOISE = ("busy", "woke up", "took")  # a test machine may be loaded: what spoils figures must not fail tests

# Of a host whose clock jumps after two readings of eight round trips each: the session's and the trial's first.
STEPPING = """
import sys, time
for number, question in enumerate(iter(sys.stdin.readline, "")):
    step_ns = 50_000_000 if number > 17 else 0
    print("{}" if question == "sync\\n" else f"{time.monotonic_ns() + step_ns} {time.time_ns()}", flush=True)
"""


@pytest.fixture
def stepping(work, monkeypatch):
    """A workplace where s1's clock steps during the first attempt."""
    provision = work.facility.provision

    def provision_and_replace(testbed):
        provision(testbed)
        (testbed.hosts["s1"].prefix / "bin" / "clock.py").write_text(STEPPING)

    monkeypatch.setattr(work.facility, "provision", provision_and_replace)
    return work


def events(folder):
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_a_trial_whose_hosts_clock_stepped_is_invalid_and_says_so(stepping):
    run = stepping.start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (True, 2)
    (rejected,) = run.path.glob("rejected/*/trial.json")
    record = json.loads(rejected.read_text())
    assert record["reason"].startswith("s1: its monotonic clock stepped by +")
    (step,) = record["clock_steps"]
    assert (step["host"], step["clock"]) == ("s1", "monotonic")
    assert abs(step["by_ns"] - 50e6) <= step["explained_ns"]
    assert trial["clock_steps"] == []
    (told,) = [event for event in events(rejected.parent) if event["event"] == "clock stepped"]
    assert told["by_ns"] == step["by_ns"]


def test_a_step_of_the_controllers_utc_is_noted_and_moves_no_time(work, monkeypatch):
    instant, calls = clocks._instant, itertools.count()

    def stepping():
        monotonic_ns, utc_ns = instant()
        return monotonic_ns, utc_ns + (
            5 * 10**9 if next(calls) >= 3 else 0
        )  # after the anchor, the session's reading and the trial's first

    monkeypatch.setattr(clocks, "_instant", stepping)
    run = work.start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (True, 1)
    (step,) = trial["clock_steps"]
    assert (step["host"], step["clock"]) == ("controller", "UTC")
    assert step["by_ns"] == pytest.approx(5 * 10**9, abs=1e6)
    rows = [row for row in run.table("clock").to_pylist() if row["host"] == "controller"]
    assert [row["phase"] for row in rows] == ["anchor", "before", "after"]
    assert rows[-1]["utc_ns"] - rows[-1]["controller_ns"] == pytest.approx(5 * 10**9, abs=1e6)
    assert len({row["offset_ns"] for row in rows}) == 1
    assert any(event["event"] == "clock stepped" for event in events(run.path / "trials" / trial["trial"]))


def test_what_keeps_the_clocks_is_stored_before_and_after(work):
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
    """Its bench is given up: nobody knows what of it still answers."""
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
    assert work.facility.raised == 2


class ShiftedLab(LabFacility):
    """Labs where s0's clock is an hour ahead."""

    def raise_site(self, topology, name):
        return Lab.up(topology, name, clock_shift_ns={"s0": HOUR_NS})


@pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")
def test_an_hours_shift_of_a_host_moves_no_joined_time(work, tiny, monkeypatch):
    monkeypatch.setattr(clocks, "PERIOD_S", 0.5)
    path = work.write(tiny(iterations=4))
    run = Runner(ShiftedLab(), work.notes).start(load_experiment(path), str(path), work.runs)
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
        shift_ns = np.where(host == "s0", HOUR_NS, 0)
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
