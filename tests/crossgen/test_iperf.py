# SPDX-License-Identifier: Apache-2.0
"""The iperf driver, over links that the tests make."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.trial.cross_traffic import _secret
from roundabout.spec.experiment import CrossTraffic
from tests.crossgen.conftest import Link
from tests.running import Running

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

DRIVER = str(Path(__file__).parents[2] / "crossgen" / "iperf.py")

Start = Callable[..., Running]


@pytest.fixture
def served(link: Link, start: Start) -> Callable[[str], Link]:
    """The link, with a server of the tool on its second host."""

    def serve(tool: str, *options: str) -> Link:
        argv = [sys.executable, DRIVER, "server", "--tool", tool, "--bind", "10.98.0.2", *options]
        link.server = start(link.inside(1, *argv))
        while ":5201" not in link.run(1, "ss -Htln"):
            time.sleep(0.01)
        return link

    return serve


def client(link: Link, tool: str, load_gbps: float, duration_s: int, *options: str) -> list[str]:
    argv = [sys.executable, DRIVER, "client", "--tool", tool, "--to", "10.98.0.2", "--load-gbps", str(load_gbps)]
    return link.inside(0, *argv, "--duration-s", str(duration_s), "--probe-s", "1", *options)


@pytest.mark.parametrize("tool", ["iperf3", "iperf"])
def test_the_load_is_reached_by_the_first_that_can(served: Callable[[str], Link], start: Start, tool: str) -> None:
    told = start(client(served(tool), tool, 0.05, 2)).event()
    assert (told["tool"], told["parallel"], told["reached"]) == (tool, 1, True)
    assert told["achieved_gbps"] == pytest.approx(0.05, rel=0.1)
    assert len(told["seconds"]) == 2
    assert all(second["gbps"] == pytest.approx(0.05, rel=0.2) for second in told["seconds"])


def test_what_was_achieved_is_told_and_not_what_was_asked(served: Callable[[str], Link], start: Start) -> None:
    link = served("iperf3")
    link.shape(100)
    told = start(client(link, "iperf3", 0.3, 1, "--most-parallel", "3")).event()
    assert told["reached"] is False
    assert [each["parallel"] for each in told["tries"]] == [1, 2, 3]
    assert told["asked_gbps"] == 0.3 and 0.05 < told["achieved_gbps"] < 0.11


def load(link: Link, load_gbps: float) -> list[str]:
    argv = [sys.executable, DRIVER, "load", "--to", "10.98.0.2", "--load-gbps", str(load_gbps), "--probe-s", "1"]
    return link.inside(0, *argv, "--most-parallel", "3")


def run_load(link: Link, start: Start, load_gbps: float, for_s: float) -> dict[str, Any]:
    running = start(load(link, load_gbps))
    assert running.event() == {"event": "ready"}
    running.begin()
    time.sleep(for_s)
    running.close_input()
    told: dict[str, Any] = running.event()
    assert running.status() == 0
    return told


@pytest.mark.quiet
def test_a_load_that_is_reached_keeps_its_connections(served: Callable[[str], Link], start: Start) -> None:
    told = run_load(served("iperf3"), start, 0.05, 2.5)
    assert (told["asked_gbps"], told["parallel"], len(told["tries"])) == (0.05, 1, 1)
    assert told["achieved_gbps"] == pytest.approx(0.05, rel=0.1)
    assert told["seconds"][-1]["end_s"] == pytest.approx(2.5, abs=0.4)


@pytest.mark.quiet
def test_a_load_that_is_not_reached_gets_more_connections(served: Callable[[str], Link], start: Start) -> None:
    link = served("iperf3")
    link.shape(100)
    told = run_load(link, start, 0.3, 6)
    assert [each["parallel"] for each in told["tries"]] == [1, 2, 3]
    assert told["parallel"] == 3 and 0.05 < told["achieved_gbps"] < 0.13
    ends = [second["end_s"] for second in told["seconds"]]
    assert ends == sorted(ends) and ends[-1] > 4


def test_a_server_takes_those_only_that_know_its_secret(link: Link, start: Start) -> None:
    told, other = (_secret(CrossTraffic.model_construct(kind="iperf")) for _ in range(2))
    server = start(link.inside(1, sys.executable, DRIVER, "server", "--bind", "10.98.0.2", "--secret"))
    server.say(f"secret {told}")
    assert server.event() == {"event": "ready"}
    for secret, is_taken in ((other, False), (None, False), (told, True)):
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
def test_iperf_ends_with_its_driver(served: Callable[[str], Link], start: Start, how: str) -> None:
    link = served("iperf3")
    running = start(client(link, "iperf3", 0.01, 60))
    while "10.98.0.2" not in link.run(0, "ss -Htn"):
        time.sleep(0.01)
    running.close_input() if how == "input" else running.terminate()
    assert running.status() == 0
    assert "iperf3" not in link.run(0, "ss -Htnp state established")


@pytest.mark.parametrize("tool", ["iperf3", "iperf"])
@pytest.mark.parametrize(("congestion", "kept"), [("reno", 0), ("nosuch", 1 << 12)])
def test_a_server_is_nobody(served: Callable[..., Link], tool: str, congestion: str, kept: int) -> None:
    """Where its client's congestion control is not for everybody, it keeps CAP_NET_ADMIN, and nothing else."""
    pid = served(tool, "--congestion", congestion).server.process.pid
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{child}/status").read_text()
    assert status.startswith(f"Name:\t{tool}\n")
    assert "Uid:\t65534\t65534\t65534\t65534\n" in status
    assert "NoNewPrivs:\t1\n" in status
    for each in ("CapPrm", "CapEff", "CapBnd"):
        assert f"{each}:\t{kept:016x}\n" in status


def test_a_server_that_is_not_there_is_said(link: Link, start: Start) -> None:
    running = start(client(link, "iperf3", 0.01, 1))
    assert running.status() == 1
    assert running.errors().startswith("iperf.py: iperf3: unable to connect to server")


def test_several_connections_of_iperf_2_are_added_up() -> None:
    text = "t,a,1,b,2,{id},0.0-1.0,1000,8000\nt,a,1,b,2,{id},1.0-2.0,3000,24000\nt,a,1,b,2,{id},0.0-2.0,4000,16000\n"
    code = "import iperf, json, sys; print(json.dumps(iperf.Iperf2.summarise(sys.stdin.read())))"
    lines = text.format(id=1) + text.format(id=2)
    where = Path(DRIVER).parent
    done = subprocess.run([sys.executable, "-c", code], input=lines, capture_output=True, text=True, cwd=where)
    told = json.loads(done.stdout)
    assert told["achieved_gbps"] == pytest.approx(2 * 16e-6)
    assert [second["gbps"] for second in told["seconds"]] == pytest.approx([2 * 8e-6, 2 * 24e-6])
