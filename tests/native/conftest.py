# SPDX-License-Identifier: Apache-2.0
"""The native programs, in namespaces that the tests make."""

import json
import os
import random
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.running import Event, Running, job_document

PROGRAMS = Path(__file__).parents[2] / "build" / "bin"


class Namespace:
    """A network namespace that lives as long as a process that ends with us, whatever ends us."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        ours = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == ours:
            assert self.holder.poll() is None, "cannot make a network namespace; the tests need root"
            time.sleep(0.001)
        self.run("ip link set lo up")
        # Whatever this machine's default is: the tests want a window that fills a short link and nothing else.
        self.run("sysctl -qw net.ipv4.tcp_congestion_control=reno")

    @property
    def pid(self) -> int:
        return self.holder.pid

    def inside(self, *argv: str) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-n", "--", *argv]

    def run(self, command: str) -> str:
        return subprocess.run(self.inside(*shlex.split(command)), check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        assert self.holder.stdin
        self.holder.stdin.close()
        self.holder.wait()


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts `program` with arguments, perhaps in a namespace; whatever still runs at the end is killed."""
    with ExitStack() as stack:

        def start_program(program: str, *arguments: str, within: Namespace | None = None) -> Running:
            path = PROGRAMS / program
            assert path.exists(), f"{path} is not built: cmake -S . -B build -G Ninja && cmake --build build"
            argv = [str(path), *arguments]
            running = Running(within.inside(*argv) if within else argv)
            stack.callback(running.kill)
            return running

        yield start_program


@pytest.fixture
def namespaces() -> Iterator[list[Namespace]]:
    """Two hosts, 10.99.0.1 and 10.99.0.2, whose eth0 are the ends of one link."""
    with ExitStack() as stack:
        hosts = []
        for _ in range(2):
            hosts.append(Namespace())
            stack.callback(hosts[-1].close)
        hosts[0].run(f"ip link add eth0 type veth peer name eth0 netns {hosts[1].pid}")
        for number, host in enumerate(hosts, 1):
            host.run(f"ip addr add 10.99.0.{number}/24 dev eth0")
            host.run("ip link set eth0 up")
        yield hosts


def free_port() -> int:
    """Below the ports that the kernel gives to outgoing connections: those may be taken again at any moment."""
    while True:
        port = random.randrange(20_000, 29_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("0.0.0.0", port))
            return port


SECRET = "open-sesame"


class Job:
    """The workers of one replayed job, s0, s1, ..., on loopback addresses or in namespaces.

    Phases are a profile's: `pattern` and `groups` say who sends to whom. `options` change what workers are given.
    """

    def __init__(
        self, start: Callable[..., Running], phases: Sequence[Event], workers: int = 2, **options: Any
    ) -> None:
        self.start_program = start
        self.hosts: Sequence[Namespace] | None = options.pop("hosts", None)
        subnet = "10.99.0" if self.hosts else "127.0.0"
        self.workers: dict[int, Running] = {}
        port = options.pop("port", None) or free_port()
        there = [(f"s{rank}", f"{subnet}.{rank + 1}", port) for rank in range(workers)]
        self.document = job_document("j1", there, phases, **options)

    def connect(self, rank: int, secret: str | None = SECRET, own: Sequence[str] = (), **options: Any) -> Running:
        words = ["--rank", str(rank), "--job", json.dumps(self.document | options), *own]
        worker = self.start_program("replay", *words, within=self.hosts[rank] if self.hosts else None)
        if secret:
            worker.say(f"secret {secret}")
        self.workers[rank] = worker
        return worker

    def connect_all(self) -> list[Running]:
        workers = [self.connect(rank) for rank in range(len(self.document["workers"]))]
        for worker in workers:
            assert worker.event() == {"event": "ready"}
        return workers

    def begin(self) -> int:
        """Lets all connected workers begin at one instant, which is returned."""
        start_ns = time.monotonic_ns() + 100_000_000
        for worker in self.workers.values():
            worker.say(f"start {start_ns}")
        return start_ns


@pytest.fixture
def job(start: Callable[..., Running]) -> Callable[..., Job]:
    def make(phases: Sequence[Event], workers: int = 2, **options: Any) -> Job:
        return Job(start, phases, workers, **options)

    return make


class Pins:
    """A folder with pinned hash maps, on a bpffs of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, name: str, key_bytes: int, value_bytes: int) -> None:
        self._do("create", name, name, str(key_bytes), str(value_bytes))

    def put(self, name: str, key: bytes, value: bytes) -> None:
        self._do("put", name, key.hex(), value.hex())

    def freeze(self, name: str) -> None:
        """Let only eBPF programs write to the map."""
        self._do("freeze", name)

    def _do(self, verb: str, name: str, *words: str) -> None:
        subprocess.run([PROGRAMS / "bpf_objects", verb, self.folder / name, *words], check=True)


@pytest.fixture
def pins(tmp_path: Path) -> Iterator[Pins]:
    subprocess.run(["mount", "-t", "bpf", "bpf", tmp_path], check=True)
    yield Pins(tmp_path)
    subprocess.run(["umount", tmp_path], check=True)
