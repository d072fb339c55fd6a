# SPDX-License-Identifier: Apache-2.0
"""1,000 connections opened and closed under each transport while it is unloaded and replaced: nothing is left of it."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec.transports import registry
from tests.deadline import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

CONNECTIONS, BATCH, REPLACED = 1000, 100, 20
LOADED_S = 0.1
TRANSPORTS = registry.program_names()
# Answers each connection with what it was sent.
ECHO = """
import socket
listener = socket.create_server(("", 5001), backlog=64); print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    while taken := connection.recv(1 << 16): connection.sendall(taken)
    connection.close()
"""
# Opens and closes connections one by one under the congestion control CC, or cubic while there is none of that name.
CHURN = """
import socket, sys
address, control, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
used, data = 0, bytes(range(256)) * 100
for number in range(count):
    connection = socket.socket()
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        used += 1
    except OSError:
        pass
    connection.connect((address, 5001)); connection.sendall(data); connection.shutdown(socket.SHUT_WR)
    got = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert got == data, len(got)
    connection.close()
print(used)
"""
WARNINGS = ("WARNING:", "BUG:", "Oops", "refcount", "leak", "use-after-free", "rcu: INFO", "possible deadlock")


def objects(tools: Any) -> dict[str, int]:
    """How many eBPF programs, maps and links the machine has."""
    return {
        kind: len(found)
        for kind, found in json.loads(tools.run(str(tools.build / "bin/bpf_objects"), "list").stdout).items()
    }


def complaints() -> list[str]:
    """What the kernel has complained of since it started."""
    said = subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
    return [line for line in said.splitlines() if any(word in line for word in WARNINGS)]


def sockets(host: Any) -> dict[str, int]:
    """TCP sockets of a namespace, by state: those in use, without a process, and waiting for their time."""
    (line,) = (each for each in host.run("cat", "/proc/net/sockstat").stdout.splitlines() if each.startswith("TCP:"))
    words = line.split()[1:]
    found = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    return {name: found[name] for name in ("inuse", "orphan")}


@contextmanager
def replaced(tools: Any, name: str, folder: Path, go_on: threading.Event) -> Iterator[list[int]]:
    """The transport loaded, unloaded and loaded as another build, in turns; how often, once the context has ended."""
    builds = folder / "other", tools.build / "bpf"
    owner = process_name("test-churn")
    builds[0].mkdir()
    for built in (tools.build / "bpf").glob(f"{name}.*"):
        (builds[0] / built.name).write_bytes(built.read_bytes() + b"\0")
    turns: list[int] = []

    def turn() -> None:
        while not go_on.is_set():
            done = tools.transport("load", name, "--owner", owner, "--objects", str(builds[len(turns) % 2]))
            assert done.returncode == 0, done.stderr
            time.sleep(LOADED_S)
            assert tools.transport("unload", name, "--owner", owner).returncode == 0
            turns.append(1)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield turns
    finally:
        go_on.set()
        thread.join()
        tools.transport("unload", name, "--owner", owner)


@pytest.mark.proof
@pytest.mark.parametrize("name", TRANSPORTS)
def test_churn_leaves_no_bpf_objects_and_no_kernel_complaints(tools: Any, pair: Any, tmp_path: Path, name: str) -> None:
    client, server = pair
    before, said = objects(tools), complaints()
    echo = ["ip", "netns", "exec", server.name, "/usr/bin/python3", "-c", ECHO]
    with subprocess.Popen(echo, stdout=subprocess.PIPE, text=True) as answering:
        try:
            assert answering.stdout
            answering.stdout.readline()
            control = registry.kernel_name(name)
            client.run("sysctl", "-qw", "net.ipv4.tcp_ecn=1")
            server.run("sysctl", "-qw", "net.ipv4.tcp_ecn=1")
            with replaced(tools, name, tmp_path, threading.Event()) as turns:
                words = ["ip", "netns", "exec", client.name, "/usr/bin/python3", "-c", CHURN, server.address]
                used: list[int] = []
                while len(used) * BATCH < CONNECTIONS or len(turns) < REPLACED:
                    done = tools.run(*words, control, str(BATCH), check=False)
                    assert done.returncode == 0, done.stderr
                    used.append(int(done.stdout))
        finally:
            answering.terminate()
    assert sum(used) > CONNECTIONS / 20
    wait_for(lambda: sockets(client) == sockets(server) == {"inuse": 0, "orphan": 0})
    wait_for(lambda: objects(tools) == before)  # the kernel frees them after a grace period
    assert control not in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    assert complaints() == said
    print(f"{name}: {sum(used)} of {len(used) * BATCH} connections used it, which was replaced {len(turns)} times")
