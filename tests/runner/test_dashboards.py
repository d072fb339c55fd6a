# SPDX-License-Identifier: Apache-2.0
"""`roundabout dashboards` with Debian's Prometheus: alone, and on a real experiment in a real lab."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import pytest

from roundabout.dashboards.prometheus import dashboards
from tests.deadline import wait_for

ROOT = Path(__file__).parents[2]
ROUNDABOUT = [sys.executable, "-m", "roundabout.cli.main"]
DIRECT = build_opener(ProxyHandler({}))
TIMEOUT_S = 90
# Of real servers alone.
ELSEWHERE = "Roundabout: a rack's NICs and GPUs"
pytestmark = [pytest.mark.lab, pytest.mark.proof, pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")]


def free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def call(url: str, path: str, **fields: str) -> Any:
    with DIRECT.open(f"{url}/api/v1/{path}?{urlencode(fields)}", timeout=10) as answer:
        return json.load(answer)["data"]


def query(url: str, expression: str) -> list[Any]:
    return list(call(url, "query", query=expression)["result"])


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


@contextmanager
def shown(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """`roundabout dashboards` at work, and where Prometheus is."""
    port = free_port()
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*ROUNDABOUT, "dashboards", "--port", str(port), "--runs", str(folder / "runs")],
        cwd=folder,
        env=environment(),
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout
        said = [process.stdout.readline() for _ in range(2)]
        assert re.match(r"open +http://127.0.0.1:\d+/\n", said[0]), said
        yield process, f"http://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate()


def answers(url: str) -> bool:
    with suppress(OSError):
        return bool(query(url, "up == 1"))
    return False


def listeners(url: str) -> bool:
    with closing(socket.socket()) as one:
        return one.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_prometheus_ends_with_the_controller(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with shown(tmp_path) as (process, url):
        wait_for(lambda: answers(url), TIMEOUT_S, what="the controller answers", every_s=0.5)
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) == status
    wait_for(lambda: not listeners(url), TIMEOUT_S, what="no program listens", every_s=0.5)


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        done = subprocess.run(
            [*ROUNDABOUT, "dashboards", "--port", str(port)],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1
    assert f"--port: found {port}" in done.stderr


def test_every_panel_has_data_during_an_experiment(tmp_path: Path) -> None:
    panels = {
        (title, name, expression)
        for title, each in dashboards().items()
        if title != ELSEWHERE
        for name, expression in each
        if "rdma" not in expression
    }
    seen: set[tuple[str, str, str]] = set()
    slowest_s = 0.0
    with shown(tmp_path) as (_, url):
        run = subprocess.Popen(
            [*ROUNDABOUT, "run", "unfair-vgg19", "--testbed", "lab", "--repetitions", "1", "--json"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            while run.poll() is None and (panels - seen or slowest_s == 0):
                time.sleep(2)
                seen |= {panel for panel in panels - seen if query(url, panel[2])}
                times = query(url, 'max(scrape_duration_seconds{site!="controller"})')
                slowest_s = max([slowest_s, *(float(each["value"][1]) for each in times)])
            health = call(url, "rules")
        finally:
            run.send_signal(signal.SIGINT)
            run.communicate()
    assert panels - seen == set()
    assert {rule["health"] for group in health["groups"] for rule in group["rules"]} == {"ok"}
    print(f"the slowest scrape took {slowest_s * 1e3:.0f} ms")
