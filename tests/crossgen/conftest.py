# SPDX-License-Identifier: Apache-2.0
"""crossgen as its users start it, on loopback and over links that the tests make."""

import csv
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.running import Event, Running

BUILD = Path(__file__).parents[2] / "build"
CROSSGEN = str(BUILD / "bin" / "crossgen")
SECRET = "open-sesame"


@dataclass
class Outcome:
    """What a sender reported."""

    status: int
    summary: Event
    flows: list[Event]
    unfinished: list[Event]
    last: Event

    @property
    def complete(self) -> bool:
        """Whether each flow that was due is listed once."""
        numbers = sorted(flow["flow"] for flow in self.flows + self.unfinished)
        return numbers == list(range(self.summary["due_flows"]))


def outcome(sender: Running) -> Outcome:
    events = sender.events()
    kinds = {kind: [each for each in events if each["event"] == kind] for kind in ("summary", "flow", "unfinished")}
    return Outcome(sender.status(), kinds["summary"][0], kinds["flow"], kinds["unfinished"], events[-1])


class Link:
    """Two hosts, 10.98.0.1 and 10.98.0.2, and a link between them; they live as long as their holders."""

    server: Running  # of iperf, where there is one

    def __init__(self, stack: ExitStack) -> None:
        self.holders = [subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) for _ in range(2)]
        for holder in self.holders:
            stack.callback(holder.wait)
            stack.callback(holder.stdin.close)
        ours = os.readlink("/proc/self/ns/net")
        while any(os.readlink(f"/proc/{holder.pid}/ns/net") == ours for holder in self.holders):
            time.sleep(0.001)
        self.run(0, f"ip link add eth0 type veth peer name eth0 netns {self.holders[1].pid}")
        for host in range(2):
            self.run(host, "ip link set lo up")
            self.run(host, "sysctl -qw net.ipv4.tcp_congestion_control=reno")
            self.run(host, f"ip addr add 10.98.0.{host + 1}/24 dev eth0")
            self.run(host, "ip link set eth0 up")

    def inside(self, host: int, *argv: str) -> list[str]:
        return ["nsenter", "-t", str(self.holders[host].pid), "-n", "--", *argv]

    def run(self, host: int, command: str) -> str:
        words = self.inside(host, *shlex.split(command))
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def shape(self, mbps: float) -> None:
        """Shapes what leaves the first host."""
        self.run(0, "tc qdisc replace dev eth0 root handle 1: htb default 1")
        self.run(0, f"tc class add dev eth0 parent 1: classid 1:1 htb rate {mbps}mbit burst 5k cburst 5k")
        self.run(0, "tc qdisc add dev eth0 parent 1:1 pfifo limit 500")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def link(stack: ExitStack) -> Link:
    return Link(stack)


@pytest.fixture
def start(stack: ExitStack) -> Callable[..., Running]:
    """Starts a program; whatever still runs at the end is killed."""

    def start_program(argv: Sequence[str]) -> Running:
        running = Running(argv)
        stack.callback(running.kill)
        return running

    return start_program


@pytest.fixture
def sink(start: Callable[..., Running]) -> Callable[..., tuple[Running, str]]:
    """Starts a sink on loopback, or on the link's second host; returns it and its address."""

    def start_sink(*options: str, link: Link | None = None, program: str = CROSSGEN) -> tuple[Running, str]:
        argv = [program, "sink", "--bind", f"{'10.98.0.2' if link else '127.0.0.1'}:0", *options]
        running = start(link.inside(1, *argv) if link else argv)
        running.say(f"secret {SECRET}")
        return running, running.event()["address"]

    return start_sink


@pytest.fixture
def send(start: Callable[..., Running]) -> Callable[..., Running]:
    """Starts a sender on loopback, or on the link's first host."""

    def start_sender(
        load: Path, *options: str, to: str, secret: str = SECRET, link: Link | None = None, program: str = CROSSGEN
    ) -> Running:
        argv = [program, "send", "--load", str(load), "--to", to, *options]
        running = start(link.inside(0, *argv) if link else argv)
        running.say(f"secret {secret}")
        return running

    return start_sender


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Path]:
    """Writes a load file."""

    def write(load_gbps: float, duration_s: float, *options: str, scale: float = 0.01) -> Path:
        path = tmp_path / "x.load"
        words = ["--load-gbps", load_gbps, "--duration-s", duration_s, "--scale-sizes", scale, "--output", path]
        argv = [CROSSGEN, "plan", *map(str, words), *options]
        subprocess.run(argv, check=True, capture_output=True)
        return path

    return write


def show(path: Path) -> list[dict[str, str]]:
    out = subprocess.run([CROSSGEN, "show", str(path)], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(out.splitlines()))
