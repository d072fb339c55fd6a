# SPDX-License-Identifier: Apache-2.0
"""A controller that is stopped, at any point of a run, and goes on: the run is as if nothing had been."""

import signal

import pytest

from roundabout.runner.hosts import clocks, deadlines, programs
from roundabout.runner.trial import attempt, captures, cross_traffic
from roundabout.store import Run
from tests.runner.interruptions.interruption_points import STOPPED_S, command, results

pytestmark = pytest.mark.unit

SHORT_S = STOPPED_S / 2  # what is stopped is so for longer than anything is waited for


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    for module, name in (
        (clocks, "ANSWER_TIMEOUT_S"),
        (programs, "CALL_TIMEOUT_S"),
        (attempt, "READY_TIMEOUT_S"),
        (attempt, "STALL_S"),
        (captures, "START_TIMEOUT_S"),
        (cross_traffic, "READY_TIMEOUT_S"),
    ):
        monkeypatch.setattr(module, name, SHORT_S)
    monkeypatch.setattr(programs, "GRACE_S", 0)
    monkeypatch.setattr(attempt, "STALL_ITERATIONS", 0)
    monkeypatch.setattr(deadlines, "SLICE_S", SHORT_S / 10)


def differing(folder, share):
    """At which points it was not as undisturbed, of a share of all."""
    (folder / "whole").mkdir()
    status, points = command("run", folder / "whole", {})
    assert status == 0
    expected = results(Run.open("last", folder / "whole/runs"))
    found = {}
    for point in range(1, points + 1, share):
        place = folder / str(point)
        place.mkdir()
        status, _ = command("run", place, {point: signal.SIGSTOP})
        again = list(place.glob("runs/*/*/rejected/*"))
        if status or again or results(Run.open("last", place / "runs")) != expected:
            found[point] = (place / "said").read_text()
    return found


@pytest.mark.proof
def test_a_run_may_be_stopped_anywhere_and_go_on(tmp_path):
    assert differing(tmp_path, 40) == {}


@pytest.mark.proof
def test_a_run_may_be_stopped_everywhere_and_go_on(tmp_path):
    assert differing(tmp_path, 1) == {}
