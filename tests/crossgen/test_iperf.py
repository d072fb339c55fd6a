# SPDX-License-Identifier: Apache-2.0
"""The iperf driver, over links that the tests make."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.trial.cross_traffic import make_secret
from roundabout.spec.cross_traffic import CrossTraffic
from tests.crossgen.conftest import Link
from tests.running import Running

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

DRIVER = str(Path(__file__).parents[2] / "crossgen" / "iperf.py")

Start = Callable[..., Running]


@pytest.fixture
def served(link: Link, start: Start) -> Callable[..., Link]:
    """Return a function that starts a server on the second host, and returns the link."""

    def serve(*options: str) -> Link:
        argv = [sys.executable, DRIVER, "server", "--bind", "10.98.0.2", *options]
        link.server = start(link.inside(1, *argv))
        while ":5201" not in link.run(1, "ss -Htln"):
            time.sleep(0.01)
        return link

    return serve


def load(link: Link, load_gbps: float) -> list[str]:
    argv = [sys.executable, DRIVER, "load", "--to", "10.98.0.2", "--load-gbps", str(load_gbps), "--probe-s", "1"]
    return link.inside(0, *argv, "--most-parallel", "3")


def run_load(link: Link, start: Start, load_gbps: float, for_s: float) -> dict[str, Any]:
    running = start(load(link, load_gbps))
    assert running.event() == {"event": "ready"}
    running.begin()
    time.sleep(for_s)
    running.close_input()
    reported: dict[str, Any] = running.event()
    assert running.status() == 0
    return reported


@pytest.mark.quiet
def test_a_load_that_is_reached_keeps_its_connections(served: Callable[..., Link], start: Start) -> None:
    reported = run_load(served(), start, 0.05, 2.5)
    assert (reported["asked_gbps"], reported["parallel"], len(reported["tries"])) == (0.05, 1, 1)
    assert reported["achieved_gbps"] == pytest.approx(0.05, rel=0.1)
    assert reported["seconds"][-1]["end_s"] == pytest.approx(2.5, abs=0.4)


@pytest.mark.quiet
def test_a_load_that_is_not_reached_gets_more_connections(served: Callable[..., Link], start: Start) -> None:
    link = served()
    link.shape(100)
    reported = run_load(link, start, 0.3, 6)
    assert [each["parallel"] for each in reported["tries"]] == [1, 2, 3]
    assert reported["parallel"] == 3 and 0.05 < reported["achieved_gbps"] < 0.13
    ends = [second["end_s"] for second in reported["seconds"]]
    assert ends == sorted(ends) and ends[-1] > 4


def test_a_server_takes_only_clients_with_its_secret(link: Link, start: Start) -> None:
    reported, other = (make_secret(CrossTraffic.model_construct(kind="iperf")) for _ in range(2))
    server = start(link.inside(1, sys.executable, DRIVER, "server", "--bind", "10.98.0.2", "--secret"))
    server.say(f"secret {reported}")
    assert server.event() == {"event": "ready"}
    for secret, is_taken in ((other, False), (None, False), (reported, True)):
        running = start([*load(link, 0.01), *(["--secret"] if secret else [])])
        if secret:
            running.say(f"secret {secret}")
        assert running.event() == {"event": "ready"}
        running.begin()
        if is_taken:
            time.sleep(1.5)
            running.close_input()
            assert running.event()["achieved_gbps"] > 0
            assert running.status() == 0
        else:
            assert running.status() == 1
            assert "authorization failed" in running.errors()


def test_a_load_without_a_server_says_so(link: Link, start: Start) -> None:
    running = start(load(link, 0.01))
    assert running.event() == {"event": "ready"}
    running.begin()
    assert running.status() == 1
    assert running.errors().startswith("iperf.py: iperf3: error - unable to connect to server")


@pytest.mark.parametrize("how", ["input", "signal"])
def test_iperf_ends_with_its_driver(served: Callable[..., Link], start: Start, how: str) -> None:
    link = served()
    running = start(load(link, 0.01))
    assert running.event() == {"event": "ready"}
    running.begin()
    while "10.98.0.2" not in link.run(0, "ss -Htn"):
        time.sleep(0.01)
    time.sleep(1.5)  # a load that ends within its first second has nothing to report
    running.close_input() if how == "input" else running.terminate()
    assert running.status() == 0
    assert "iperf3" not in link.run(0, "ss -Htnp state established")


@pytest.mark.parametrize(("congestion", "kept"), [("reno", 0), ("nosuch", 1 << 12)])
def test_an_iperf_server_runs_as_nobody(served: Callable[..., Link], congestion: str, kept: int) -> None:
    """Where its client's congestion control is not for everybody, it keeps CAP_NET_ADMIN, and nothing else."""
    pid = served("--congestion", congestion).server.process.pid
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{child}/status").read_text()
    assert status.startswith("Name:\tiperf3\n")
    assert "Uid:\t65534\t65534\t65534\t65534\n" in status
    assert "NoNewPrivs:\t1\n" in status
    for each in ("CapPrm", "CapEff", "CapBnd"):
        assert f"{each}:\t{kept:016x}\n" in status
