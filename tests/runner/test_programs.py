# SPDX-License-Identifier: Apache-2.0
"""Programs on hosts: their output is kept whole, and a program that ends early is never taken for a lost host."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import paramiko
import pytest
from hypothesis import given, strategies

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import Connection, LocalConnection, LostHostError, SshConnection
from roundabout.runner.hosts.programs import ENDS_WITH_STDIN, Program, call, check_call
from tests.runner.interruptions.ssh_servers import connected_to

pytestmark = pytest.mark.unit

TIMEOUT_S = 60
MUCH = 24 << 20  # bytes, more than an SSH window
TEXT = strategies.text(strategies.characters(exclude_characters="\n", exclude_categories=["Cs"]))


class Server(paramiko.ServerInterface):
    """An SSH server that runs each command, as sshd does."""

    def get_allowed_auths(self, _user: str) -> str:
        return "password"

    def check_auth_password(self, _user: str, _password: str) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, _kind: str, _number: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=self.run, args=[channel, command], daemon=True).start()
        return True

    def run(self, channel: paramiko.Channel, command: bytes) -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(["sh", "-c", command], stdin=pipe, stdout=pipe, stderr=pipe) as process:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            pumps = [
                threading.Thread(target=pump, args=each, daemon=True)
                for each in (
                    (lambda: channel.recv(1 << 15), process.stdin.write, process.stdin.close),
                    (lambda: process.stdout.read1(1 << 15), channel.sendall, lambda: None),
                    (lambda: process.stderr.read1(1 << 15), channel.sendall_stderr, lambda: None),
                )
            ]
            for each in pumps:
                each.start()
            for each in pumps[1:]:
                each.join()
            with suppress(EOFError, OSError):
                channel.send_exit_status(process.wait())
                channel.shutdown_write()
                channel.close()


def pump(read: Any, write: Any, close: Any) -> None:
    """Carry everything from one end to the other, as far as that takes it."""
    with suppress(OSError, ValueError):
        while data := read():
            write(data)
    with suppress(OSError):
        close()


@pytest.fixture(scope="module")
def ssh() -> Iterator[Connection]:
    with connected_to(Server()) as connection, closing(SshConnection("s0", connection)) as host:
        yield host


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest) -> Connection:
    return LocalConnection() if request.param == "local" else request.getfixturevalue("ssh")


class Recorded:
    """A connection whose program said `chunks`, and ended so."""

    host = "s0"

    def __init__(self, chunks: list[bytes], status: int | None = 0) -> None:
        self._chunks, self._status = iter(chunks), status

    def start(self, _argv: object) -> Any:
        return self

    def read(self) -> bytes:
        return next(self._chunks, b"")

    def result(self) -> tuple[int | None, str]:
        return self._status, ""


def received(connection: Any, argv: list[str] | None = None) -> list[str | None]:
    """Return every line that a program's listener gets."""
    lines: list[str | None] = []
    Program("a program", connection, argv or ["true"], lambda _, line: lines.append(line)).finish(TIMEOUT_S)
    return lines


@given(strategies.lists(TEXT, max_size=8), strategies.booleans(), strategies.data())
def test_lines_are_the_same_wherever_chunks_end(lines: list[str], ends: bool, data: strategies.DataObject) -> None:
    said = "\n".join(lines).encode() + b"\n" * (ends and bool(lines))
    cuts = sorted(data.draw(strategies.sets(strategies.integers(1, max(len(said) - 1, 1)), max_size=12)))
    chunks = [part for begin, end in zip([0, *cuts], [*cuts, len(said)], strict=True) if (part := said[begin:end])]
    expected = said.decode().removesuffix("\n").split("\n") if said else []
    assert received(Recorded(chunks)) == [*expected, None]


@pytest.mark.parametrize("status", [None, -9, 137])
def test_a_line_that_a_kill_cut_short_is_dropped(status: int | None) -> None:
    assert received(Recorded([b'{"event":"ready"}\n{"eve'], status)) == ['{"event":"ready"}', None]


def test_a_line_of_megabytes_takes_no_longer_than_its_bytes() -> None:
    chunk = b"a" * 1024
    begin = time.process_time()
    (line, _) = received(Recorded([chunk] * 64_000))
    assert line is not None
    assert len(line) == 64_000 * 1024
    assert time.process_time() - begin < 5, "each chunk was joined to all before it"


def test_a_last_line_without_newline_is_received_from_a_real_program(host: Connection) -> None:
    assert received(host, [sys.executable, "-c", "print('ü' * 70001 + '\\nlast', end='')"]) == [
        "ü" * 70001,
        "last",
        None,
    ]


def test_a_program_that_does_not_read_its_input_says_why_it_ended(host: Connection) -> None:
    full = ["sh", "-c", "echo 'No space left on device' >&2; exit 3"]
    done = call(host, full, "x" * MUCH)
    assert (done.status, done.stderr) == (3, "No space left on device")
    with pytest.raises(RoundaboutError, match="No space left on device") as error:
        check_call(host, full, "x" * MUCH)
    assert not isinstance(error.value, LostHostError)


def test_writing_to_a_program_that_ended_is_no_lost_host(host: Connection) -> None:
    program = Program("a program", host, ["sh", "-c", "echo refused >&2; exit 4"])
    program.finish(TIMEOUT_S)
    program.send("start 5")
    assert (program.lost_connection, program.status, program.describe_end()) == (False, 4, "refused")


def test_a_program_that_says_much_on_stderr_goes_on(host: Connection) -> None:
    said = f"import sys; sys.stderr.write('e' * {MUCH}); print('iteration', flush=True)"
    program = Program("a trainer", host, [sys.executable, "-c", said])
    program.finish(TIMEOUT_S)
    assert (program.lines, program.status, len(program.stderr)) == (["iteration"], 0, MUCH)


def test_a_program_that_ignores_stdin_is_ended_when_stdin_closes() -> None:
    program = Program("sleep", LocalConnection(), [*ENDS_WITH_STDIN, "sleep", "60"])
    assert not program.has_ended
    program.close_stdin()
    program.finish()
    assert program.status == 128 + signal.SIGTERM


def test_closing_the_connection_ends_a_program_that_nobody_finished() -> None:
    ended = threading.Event()
    connection = LocalConnection()
    program = Program("sleep", connection, ["sleep", "60"], lambda *_: ended.set())
    connection.close()
    assert ended.wait(TIMEOUT_S)
    assert program.status == -signal.SIGKILL


def test_a_program_that_ends_before_stdin_closes_keeps_its_output_and_status() -> None:
    program = Program("sh", LocalConnection(), [*ENDS_WITH_STDIN, "sh", "-c", "echo done; exit 3"])
    program.finish()
    assert (program.lines, program.status) == (["done"], 3)
