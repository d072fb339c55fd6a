# SPDX-License-Identifier: Apache-2.0
"""Programs on connected hosts: short ones run to their end, and the lines of long ones are collected."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import Channel, Connection, LostHostError
from roundabout.runner.hosts.deadlines import within

CALL_S = 60  # what is read, set, loaded or restored takes seconds
GRACE_S = 5  # the host itself ends what takes longer, so that nothing goes on there, and has so long to say so
TIMED_OUT = 124  # as timeout(1) says it
BY_ITSELF = range(128)  # exit statuses of programs that no signal ended: a signal may end a program within a line
# A command that runs the program in its arguments, and ends it when standard input closes, so that no program is left
# listening. Its own end is the program's.
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
    """Exit status and output of a short program."""

    status: int
    stdout: str
    stderr: str


@contextmanager
def limit_answer_time(connection: Connection, channel: Channel, seconds: float, what: str) -> Iterator[None]:
    """Drop a host whose answer for `what` takes longer than `seconds`. Raises LostHostError."""

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
    """Run a short program to its end. Raises LostHostError, also if its end takes too long."""
    channel = connection.start(["timeout", str(CALL_S), *argv])
    with limit_answer_time(connection, channel, CALL_S + GRACE_S, argv[0]):
        channel.write(stdin.encode())
        channel.close_stdin()
        stdout = b"".join(iter(channel.read, b""))
        status, stderr = channel.result()
    if status is None:
        raise LostHostError(connection.host, f"the connection broke during {argv[0]}")
    if status == TIMED_OUT:
        raise LostHostError(connection.host, f"{argv[0]} took longer than {CALL_S:g} s")
    return Completed(status, stdout.decode(errors="replace"), stderr)


def check_call(connection: Connection, argv: Sequence[str], stdin: str = "") -> str:
    """Run a program that must succeed, and return its stdout. Raises RoundaboutError with its stderr."""
    done = call(connection, argv, stdin)
    if done.status != 0:
        said = done.stderr.removeprefix("error: ") or f"exit status {done.status}"
        raise RoundaboutError(f"{connection.host}: {' '.join(argv[:2])}: {said}")
    return done.stdout


class Program:
    """A long-running program whose lines one blocking thread collects.

    The thread calls `on_line(program, line)` for each line, and `on_line(program, None)` once at the end, after
    `status` (None: the connection broke) and `stderr` are set. `secret` is the first line of its stdin.
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
        """Write a line to the program's stdin. If it ended, its end tells why. Raises LostHostError."""
        self._channel.write(f"{line}\n".encode())

    def close_stdin(self) -> None:
        """Close the program's stdin, which tells it to end."""
        self._channel.close_stdin()

    def finish(self, patience_s: float = 5.0) -> None:
        """Wait for the program's end; drop the program if it does not end in time."""
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self._channel.close()
            self._thread.join(patience_s)

    @property
    def has_ended(self) -> bool:
        """Return True if the program has ended."""
        return not self._thread.is_alive()

    @property
    def lost_connection(self) -> bool:
        """Return True if the program ended because its connection broke."""
        return self.has_ended and self.status is None

    def describe_end(self) -> str:
        """Return one line on how the program ended."""
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
