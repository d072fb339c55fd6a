# SPDX-License-Identifier: Apache-2.0
"""The same program under the address, undefined-behaviour and thread sanitizers."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crossgen.conftest import Link, outcome
from tests.running import Running
from tests.sanitized import sanitized

Start = Callable[..., Running]
Sink = Callable[..., tuple[Running, str]]
Plan = Callable[..., Path]

pytestmark = [pytest.mark.lab, pytest.mark.proof]


@pytest.fixture(params=["address,undefined", "thread"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """TSan takes a recv(nullptr, MSG_TRUNC) for one that writes to address 0; the kernel discards.

    A sink has stepped down, and may not be searched for leaks.
    """
    known = tmp_path / "known"
    known.write_text("race_top:recv\n")
    monkeypatch.setenv("TSAN_OPTIONS", f"suppressions={known}")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    return str(sanitized(request.param, "crossgen") / "crossgen")


THREADS = ["--threads", "3"]


def test_a_busy_run_that_grows_its_pool_is_clean(plan: Plan, sink: Sink, send: Start, link: Link, program: str) -> None:
    link.shape(200)
    receiver, address = sink(*THREADS, link=link, program=program)
    limits = ["--connections", "2", "--most-connections", "20", "--drain-s", "0.3"]
    load = plan(0.3, 1, "--burst-width-us", "1000")
    sender = send(load, *THREADS, *limits, to=f"sink={address}", link=link, program=program)
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert (report.status, report.complete) == (0, True), sender.errors()
    assert report.flows and 4 < report.summary["connections"] <= 40
    receiver.close_input()
    assert receiver.status() == 0, receiver.errors()


def test_fresh_connections_are_clean(plan: Plan, sink: Sink, send: Start, program: str) -> None:
    receiver, address = sink(*THREADS, program=program)
    limits = ["--fresh-connections", "--most-connections", "20", "--drain-s", "0.3"]
    load = plan(0.3, 1, "--burst-width-us", "1000")
    sender = send(load, *THREADS, *limits, to=f"sink={address}", program=program)
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert (report.status, report.complete) == (0, True), sender.errors()
    assert report.summary["connections"] > 20
    receiver.close_input()
    assert receiver.status() == 0, receiver.errors()


def test_a_sink_that_dies_amid_flows_is_clean(plan: Plan, sink: Sink, send: Start, link: Link, program: str) -> None:
    link.shape(50)
    receiver, address = sink(*THREADS, link=link, program=program)
    sender = send(plan(0.1, 20), *THREADS, to=f"sink={address}", link=link, program=program)
    sender.event()
    sender.begin()
    time.sleep(0.5)
    receiver.process.kill()
    report = outcome(sender)
    errors = sender.errors()
    assert (report.status, report.complete) == (1, True), errors
    assert errors.count("\n") == 1, errors
