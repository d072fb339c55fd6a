# SPDX-License-Identifier: Apache-2.0
"""Programs on connected hosts: calls of short programs, and the output of long-running ones."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import Channel, Connection, LostHostError
from roundabout.runner.hosts.deadlines import within

CALL_TIMEOUT_S = 60  # time limit of a short program; reading or applying settings takes seconds
GRACE_S = 5  # further time for the host's own timeout(1) to end the program and report it
TIMED_OUT = 124  # exit status of timeout(1)
BY_ITSELF = range(128)  # exit statuses without a signal; a signal can cut a program's last line
# Command prefix that ends the program when its stdin closes, so that no program keeps listening after a lost
# connection. The command ends with the program and its exit status.
ENDS_WITH_STDIN = (
    "sh",
    "-c",
    """
exec 3<&0
"$@" < /dev/null 3<&- &
program=$!
(read -r _ <&3; kill "$program") > /dev/null 2>&1 &
guard=$!
wait "$program"
status=$?
kill "$guard" 2> /dev/null
exit "$status"
""",
    "sh",
)


@dataclass(frozen=True)
class Completed:
    """The exit status and output of a short program."""

    status: int
    stdout: str
    stderr: str


@contextmanager
def limit_answer_time(connection: Connection, channel: Channel, seconds: float, what: str) -> Iterator[None]:
    """Close the host's connection if the block, which waits for `what`, takes longer than `seconds`.

    Raises LostHostError in this case.
    """

    def drop() -> None:
        connection.close()
        channel.close()

    try:
        with within(seconds, drop) as overdue:
            yield
    except RoundaboutError:
        if not overdue.is_set():
            raise
    if overdue.is_set():
        raise LostHostError(connection.host, f"{what} took longer than {seconds:g} s")


def call(connection: Connection, argv: Sequence[str], stdin: str = "") -> Completed:
    """Run a short program to its end, with `stdin` as its input. Raises LostHostError, also after CALL_TIMEOUT_S."""
    channel = connection.start(["timeout", str(CALL_TIMEOUT_S), *argv])
    with limit_answer_time(connection, channel, CALL_TIMEOUT_S + GRACE_S, argv[0]):
        channel.write(stdin.encode())
        channel.close_stdin()
        stdout = b"".join(iter(channel.read, b""))
        status, stderr = channel.result()
    if status is None:
        raise LostHostError(connection.host, f"the connection broke during {argv[0]}")
    if status == TIMED_OUT:
        raise LostHostError(connection.host, f"{argv[0]} took longer than {CALL_TIMEOUT_S:g} s")
    return Completed(status, stdout.decode(errors="replace"), stderr)


def check_call(connection: Connection, argv: Sequence[str], stdin: str = "") -> str:
    """Run a short program and return its stdout. Raises RoundaboutError with its stderr if it fails."""
    done = call(connection, argv, stdin)
    if done.status != 0:
        said = done.stderr.removeprefix("error: ") or f"exit status {done.status}"
        raise RoundaboutError(f"{connection.host}: {' '.join(argv[:2])}: {said}")
    return done.stdout


class Program:
    """A long-running program whose output one blocking thread reads.

    The thread calls `on_line(program, line)` for each line. At the end it sets `status` (None if the connection broke)
    and `stderr`, and calls `on_line(program, None)`. `secret` is written to stdin as the first line.
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        argv: Sequence[str],
        on_line: "Callable[[Program, str | None], None] | None" = None,
        secret: str | None = None,
    ) -> None:
        self.name, self.host = name, connection.host
        self.lines: list[str] = []
        self.status: int | None = None
        self.stderr = ""
        self._on_line = on_line or (lambda _program, _line: None)
        self._channel = connection.start(argv)
        if secret:
            with suppress(LostHostError):  # its end says why
                self.send(f"secret {secret}")
        self._thread = threading.Thread(target=self._collect, name=f"{name}@{connection.host}", daemon=True)
        self._thread.start()

    def send(self, line: str) -> None:
        """Write a line to the program's stdin. An ended program is no error here. Raises LostHostError."""
        self._channel.write(f"{line}\n".encode())

    def close_stdin(self) -> None:
        """Close the program's stdin, which makes it end."""
        self._channel.close_stdin()

    def finish(self, timeout_s: float = 5.0) -> None:
        """Wait for the program's end. Close its channel if it does not end within `timeout_s`."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._channel.close()
            self._thread.join(timeout_s)

    @property
    def has_ended(self) -> bool:
        """Return True if the program has ended."""
        return not self._thread.is_alive()

    @property
    def lost_connection(self) -> bool:
        """Return True if the program ended because its connection broke."""
        return self.has_ended and self.status is None

    def describe_end(self) -> str:
        """Return one line about the program's end: its exit status and stderr, or the broken connection."""
        if self.status is None:
            return "the connection broke"
        return self.stderr.splitlines()[-1] if self.stderr else f"exit status {self.status}"

    def _collect(self) -> None:
        begun: list[bytes] = []  # a line without its end yet, in parts: it may be of megabytes
        for chunk in iter(self._channel.read, b""):
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                self._take([*begun, part])
                begun = []
            begun += [rest] * bool(rest)
        status, stderr = self._channel.result()
        if begun and status in BY_ITSELF:
            self._take(begun)
        self.status, self.stderr = status, stderr
        self._on_line(self, None)

    def _take(self, parts: Sequence[bytes]) -> None:
        line = b"".join(parts).decode(errors="replace")
        self.lines.append(line)
        self._on_line(self, line)
