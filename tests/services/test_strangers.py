# SPDX-License-Identifier: Apache-2.0
"""Whatever listens, poked by strangers: it goes on, loses nothing, and does not get busy; also under sanitizers."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.deadline import wait_for
from tests.native.conftest import SECRET, Job
from tests.running import Running
from tests.sanitized import sanitized
from tests.services.strangers import MANY, STRANGERS, Address, connect

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
SINK_HELLO = b"rbcross1" + SECRET.encode().ljust(64, b"\0")
WORKER_HELLO = f"roundabout-replay-3 {SECRET} j1 7 0 1".encode().ljust(256, b"\0")  # there is no rank 7
ALLREDUCE = {"name": "allreduce", "bytes": 100_000, "alone_ms": 5}
NOBODY = {"Uid": "65534", "Gid": "65534", "CapEff": "0000000000000000", "CapPrm": "0000000000000000", "NoNewPrivs": "1"}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

Start = Callable[..., Running]
Programs = Path


@pytest.fixture(params=["as built", pytest.param("sanitized", marks=pytest.mark.proof)])
def programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Where crossgen and replay are. Who has stepped down may not be searched for leaks."""
    if request.param == "as built":
        return ROOT / "build/bin"
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    return sanitized("address,undefined", "crossgen", "replay")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def start(stack: ExitStack) -> Start:
    """Starts a program; whatever still runs at the end is killed."""

    def start_program(program: str, *arguments: str, **_within: None) -> Running:
        running = Running([program, *arguments])
        stack.callback(running.kill)
        return running

    return start_program


def address_of(text: str) -> Address:
    host, port = text.split(":")
    return host, int(port)


def poke(stack: ExitStack, address: Address, hello: bytes) -> None:
    """All strangers at once, who stay until the end."""
    for stranger in STRANGERS.values():
        for left in stranger(address, hello):
            stack.enter_context(left)


def threads_of(running: Running) -> list[dict[str, str]]:
    """Return the kernel's status of each thread of a process, that of its main thread first."""
    tasks = sorted(Path(f"/proc/{running.process.pid}/task").iterdir(), key=lambda path: int(path.name))
    fields = [[line.partition(":") for line in (path / "status").read_text().splitlines()] for path in tasks]
    return [{name: words.split()[0] for name, _, words in thread if words.split()} for thread in fields]


def busy_s(running: Running, for_s: float) -> float:
    """How much CPU a process takes in a time."""

    def ticks() -> int:
        fields = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(for_s)
    return (ticks() - before) / TICKS_PER_S


def descriptors(running: Running) -> int:
    return len(os.listdir(f"/proc/{running.process.pid}/fd"))


def unharmed(running: Running) -> None:
    """It ended well, and no sanitizer complained."""
    assert running.status() == 0, running.errors()
    errors = running.errors()
    assert "Sanitizer" not in errors
    assert "runtime error" not in errors


@pytest.fixture
def sink(programs: Programs, start: Start) -> tuple[Running, Address]:
    running = start(str(programs / "crossgen"), "sink", "--bind", "127.0.0.1:0", "--threads", "2")
    running.say(f"secret {SECRET}")
    return running, address_of(running.event()["address"])


@pytest.fixture
def send(programs: Programs, start: Start, tmp_path: Path) -> Callable[..., Running]:
    """Starts a sender of a short load."""
    load = str(tmp_path / "x.load")
    crossgen = str(programs / "crossgen")
    words = ["--load-gbps", "0.05", "--duration-s", "0.3", "--scale-sizes", "0.01", "--output", load]
    subprocess.run([crossgen, "plan", *words], check=True, capture_output=True)

    def begin(to: Address, *options: str) -> Running:
        running = start(
            crossgen, "send", "--load", load, "--to", f"sink={to[0]}:{to[1]}", "--connections", "2", *options
        )
        running.say(f"secret {SECRET}")
        return running

    return begin


def played(sender: Running) -> None:
    """All of its flows arrive."""
    sender.begin()
    summary = sender.events()[0]
    assert summary["finished_flows"] == summary["planned_flows"] > 0
    unharmed(sender)


def test_a_sink_takes_its_flows_all_the_same(
    stack: ExitStack, sink: tuple[Running, Address], send: Callable[..., Running]
) -> None:
    running, address = sink
    known = descriptors(running)
    poke(stack, address, SINK_HELLO)
    for words in (b"", bytes(15), b"\1" * 16, bytes(16), (1).to_bytes(8, "little") + (9).to_bytes(8, "little") + b"12"):
        rude = stack.enter_context(connect(address))  # has the secret, and then talks rubbish
        rude.sendall(SINK_HELLO + words)
    sender = send(address)
    sender.event()
    assert busy_s(running, 0.5) < 0.3
    played(sender)
    wait_for(lambda: descriptors(running) <= known + 64 + 5, 10)  # once it has read that the sender is gone
    running.close_input()
    (end,) = running.events()
    assert end["refused_connections"] > MANY - 64  # the others are still at the door
    unharmed(running)


@pytest.mark.parametrize("limited", [False, True])
def test_workers_find_each_other_all_the_same(
    stack: ExitStack, programs: Programs, start: Start, limited: bool
) -> None:
    """64 descriptors are enough, however many others connect."""
    limit = ["sh", "-c", 'ulimit -n 64 && exec "$0" "$@"'] if limited else []
    job = Job(lambda _, *words, **__: start(*limit, str(programs / "replay"), *words), [ALLREDUCE], iterations=2)
    first = job.connect(0)
    document = job.document["workers"][0]
    poke(stack, (document["address"], document["port"]), WORKER_HELLO)
    assert busy_s(first, 0.5) < 0.3
    second = job.connect(1)
    assert [worker.event() for worker in (first, second)] == [{"event": "ready"}] * 2
    job.begin()
    for worker in (first, second):
        assert worker.events()[-1] == {"event": "done", "iterations": 2}
        unharmed(worker)


def test_a_stranger_with_the_secret_cannot_spoil_a_trial_unnoticed(
    stack: ExitStack, programs: Programs, start: Start
) -> None:
    """It takes a worker's place with that worker's own hello: nothing that was measured with it counts."""
    job = Job(lambda _, *words, **__: start(str(programs / "replay"), *words), [ALLREDUCE], iterations=2)
    first = job.connect(0)
    document = job.document["workers"][0]
    ear = stack.enter_context(socket.create_server((document["address"].replace(".1", ".2"), document["port"])))
    theirs, _ = ear.accept()
    hello = stack.enter_context(theirs).recv(256, socket.MSG_WAITALL).rstrip(b"\0").split(b" ")
    hello[3] = b"1"  # the other rank, with the job's own fingerprint
    theirs.sendall(b"welcome".ljust(256, b"\0"))
    thief = stack.enter_context(connect((document["address"], document["port"])))
    thief.sendall(b" ".join(hello).ljust(256, b"\0"))
    assert thief.recv(256).startswith(b"welcome")
    assert first.event() == {"event": "ready"}
    thief.sendall(bytes(200_001))  # the job has 200,000
    error = first.events()[-1]
    assert error == {"event": "error", "message": "peer s1 (127.0.0.2) sent more than its job has"}
    assert first.status() == 1
    assert "Sanitizer" not in first.errors()


@pytest.mark.skipif(os.geteuid() != 0, reason="without root a process keeps what it has")
def test_listening_programs_run_as_nobody(
    sink: tuple[Running, Address], send: Callable[..., Running], programs: Programs, start: Start
) -> None:
    sender = send(sink[1])
    sender.event()
    found = threads_of(sender)[0]  # CAP_NET_ADMIN and CAP_SYS_NICE, for congestion control and priority
    assert (found["Uid"], found["NoNewPrivs"], int(found["CapEff"], 16)) == ("65534", "1", 1 << 12 | 1 << 23)
    assert threads_of(sender)[1:]
    wait_for(lambda: all(NOBODY.items() <= worker.items() for worker in threads_of(sender)[1:]), 10)
    job = Job(lambda _, *words, **__: start(str(programs / "replay"), *words), [ALLREDUCE])
    for running in (sink[0], *job.connect_all()):
        for found in threads_of(running):
            assert {name: found[name] for name in NOBODY} == NOBODY


@pytest.mark.parametrize(
    "line", ["secret short", "secret " + "x" * 65, "secret with blanks within", "start 5", "x" * 5000]
)
def test_an_invalid_secret_is_refused_and_not_repeated(programs: Programs, start: Start, line: str) -> None:
    job = Job(lambda _, *words, **__: start(str(programs / "replay"), *words), [ALLREDUCE])
    for running in (start(str(programs / "crossgen"), "sink", "--bind", "127.0.0.1:0"), job.connect(0, secret=None)):
        running.say(line)
        assert running.status() == 1
        said = running.errors()
        assert "on standard input, found" in said
        assert line.rsplit(maxsplit=1)[-1] not in said


def test_an_end_is_noticed_while_a_secret_is_waited_for(programs: Programs, start: Start) -> None:
    for ends in ("input", "signal"):
        running = start(str(programs / "crossgen"), "sink", "--bind", "127.0.0.1:0")
        running.close_input() if ends == "input" else running.process.send_signal(signal.SIGTERM)
        assert running.status() in (0, -signal.SIGTERM)  # the signal may come before anybody listens to it
