# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a veth pair, and the transport tool run inside them."""

import json
import subprocess
import sysconfig
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.machine.process_leftovers import process_name

BUILD = Path(__file__).parents[2] / "build"

# Sends for a given time to a listener, and says how much the receiver took and what the kernel counted.
RECEIVE = """
import socket, sys
listener = socket.create_server(("", 5001)); print("ready", flush=True)
connection, _ = listener.accept(); total = 0
while taken := connection.recv_into(buffer := bytearray(1 << 18)): total += taken
print(total)
"""
SEND = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 5001))
block = bytes(1 << 16); end = time.monotonic() + float(sys.argv[2])
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
while time.monotonic() < end: connection.sendall(block)
"""


def run(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, check=check, capture_output=True, text=True, timeout=60)


@dataclass(frozen=True)
class Namespace:
    name: str
    address: str

    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run("ip", "netns", "exec", self.name, *argv, check=check)

    def transport(self, *argv: str) -> Any:
        return json.loads(self.run(str(BUILD / "bin/transport"), *argv).stdout)


@pytest.fixture
def pair() -> Iterator[tuple[Namespace, Namespace]]:
    ends = tuple(Namespace(process_name(f"test-pair-{i}"), f"10.77.9.{i}") for i in (1, 2))
    try:
        for end in ends:
            run("ip", "netns", "add", end.name)
        run("ip", "link", "add", "eth0", "netns", ends[0].name, "type", "veth", "peer", "eth0", "netns", ends[1].name)
        for end in ends:
            run("ip", "-n", end.name, "addr", "add", f"{end.address}/24", "dev", "eth0")
            run("ip", "-n", end.name, "link", "set", "eth0", "up", "gso_max_size", "4600")
        yield ends[0], ends[1]
    finally:
        for end in ends:
            run("ip", "netns", "del", end.name, check=False)


def transport(*argv: str) -> subprocess.CompletedProcess[str]:
    return run(str(BUILD / "bin/transport"), *argv, check=False)


@contextmanager
def loaded(name: str) -> Iterator[str]:
    """A transport that is loaded; whatever else uses it is left alone."""
    owner = process_name(f"test-{uuid.uuid4().hex[:6]}")
    answer = transport("load", name, "--owner", owner)
    assert answer.returncode == 0, answer.stderr
    try:
        yield owner
    finally:
        transport("unload", name, "--owner", owner)


@pytest.fixture
def dcqcn() -> Iterator[str]:
    """dcqcn loaded for this test."""
    with loaded("dcqcn") as owner:
        yield owner


def compiled(source: Path, output: Path, *defines: str) -> None:
    """Compile eBPF as cmake/BpfObject.cmake does."""
    flags = (BUILD.parent / "cmake/bpf_flags.txt").read_text().split()
    multiarch = ["-idirafter", f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}"]
    include = ["-I", str(BUILD.parent / "transports/common")]
    run("clang", *flags, *multiarch, *include, *(f"-D{each}" for each in defines), "-c", str(source), "-o", str(output))


def transfer(sender: Namespace, receiver: Namespace, seconds: float) -> int:
    """Bytes that `receiver` took from `sender` in about `seconds`."""
    with subprocess.Popen(
        ["ip", "netns", "exec", receiver.name, "/usr/bin/python3", "-c", RECEIVE], stdout=subprocess.PIPE, text=True
    ) as taking:
        assert taking.stdout is not None
        taking.stdout.readline()
        sender.run("/usr/bin/python3", "-c", SEND, receiver.address, str(seconds))
        return int(taking.stdout.readline())


@pytest.fixture
def tools() -> Any:
    """The functions above, for tests: importlib mode has no sibling imports."""

    class Tools:
        namespace = Namespace
        run = staticmethod(run)
        transport = staticmethod(transport)
        loaded = staticmethod(loaded)
        compiled = staticmethod(compiled)
        transfer = staticmethod(transfer)
        build = BUILD

    return Tools
