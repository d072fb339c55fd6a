# SPDX-License-Identifier: Apache-2.0
"""Reaching hosts: one connection a host for a whole run, and programs started over it.

Fabric connects. Programs, short and long, run in sessions of its paramiko transport: Fabric's own `run` polls each
command's streams a hundred times a second, which is CPU taken from what is being measured. Here every read blocks.
"""

import shlex
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Protocol

import paramiko

from roundabout.errors import RoundaboutError

WINDOW_BYTES = 16 << 20  # a whole trial's output fits: no round trip ever holds a collector up
CHUNK_BYTES = 1 << 16


class LostHostError(RoundaboutError):
    """The connection to a host broke."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"lost host {host}: {why}")
        self.host = host


class Channel(Protocol):
    """The three streams of a program that runs somewhere."""

    def read(self) -> bytes:
        """Block for some of its stdout; empty at the end."""

    def write(self, data: bytes) -> None:
        """Write all of `data` to its stdin."""

    def close_stdin(self) -> None:
        """Tell the program to end."""

    def result(self) -> tuple[int | None, str]:
        """After the end of stdout: exit status (None: the connection broke) and stderr."""

    def close(self) -> None:
        """Drop the program."""


class Link(Protocol):
    """One host, connected."""

    host: str

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program there. Raises LostHostError."""

    def close(self) -> None:
        """Drop the connection and everything that was started over it."""


class Tunnel:
    """A ProxyCommand at the end of a real socket.

    Paramiko's own takes the command's end for silence, and spins: a host that is lost would never be noticed. A session
    of its own keeps Ctrl-C from the command: the runner still needs its hosts to undo what it did.
    """

    def __init__(self, command: str) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            self._process = subprocess.Popen(
                shlex.split(command), stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True
            )

    def close(self) -> None:
        """End the command."""
        self.socket.close()
        self._process.terminate()
        self._process.wait()


class SshLink:
    """A host behind SSH. `connection` is a fabric.Connection; it is opened here."""

    def __init__(self, host: str, connection: Any) -> None:
        self.host = host
        self._connection = connection
        self._tunnel: Tunnel | None = None
        try:
            if isinstance(connection.gateway, str):  # its ssh_config has a ProxyCommand
                self._tunnel = Tunnel(_expanded(connection.gateway, host))
                connection.gateway = None
                connection.connect_kwargs["sock"] = self._tunnel.socket
            connection.open()
        except (paramiko.SSHException, OSError, EOFError) as error:
            self.close()
            raise LostHostError(host, f"cannot connect: {error}") from error

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program there. Raises LostHostError."""
        try:
            session = self._connection.transport.open_session(window_size=WINDOW_BYTES)
            session.exec_command(shlex.join(argv))
        except (paramiko.SSHException, OSError, EOFError, AttributeError) as error:
            raise LostHostError(self.host, str(error) or type(error).__name__) from error
        return SshChannel(self.host, session)

    def close(self) -> None:
        """Drop the connection."""
        self._connection.close()
        if self._tunnel:
            self._tunnel.close()


def _expanded(proxy_command: str, host: str) -> str:
    """The command with ssh_config's %h and the like filled in."""
    config = paramiko.SSHConfig.from_text(f"Host {host}\n  ProxyCommand {proxy_command}\n")
    return str(config.lookup(host)["proxycommand"])


class SshChannel:
    """A program behind SSH."""

    def __init__(self, host: str, session: paramiko.Channel) -> None:
        self._host, self._session = host, session

    def read(self) -> bytes:
        """Block for some of its stdout; empty at the end, or when the connection broke."""
        return self._session.recv(CHUNK_BYTES)

    def write(self, data: bytes) -> None:
        """Write all of `data` to its stdin. Raises LostHostError."""
        try:
            self._session.sendall(data)
        except (OSError, EOFError) as error:
            raise LostHostError(self._host, str(error) or "its program ended") from error

    def close_stdin(self) -> None:
        """Tell the program to end."""
        with suppress(OSError, EOFError):  # it may be gone already, which is what was wanted
            self._session.shutdown_write()

    def result(self) -> tuple[int | None, str]:
        """Exit status (None: the connection broke) and stderr."""
        status = self._session.recv_exit_status()
        said = b"".join(iter(lambda: self._session.recv_stderr(CHUNK_BYTES), b""))
        return (None if status < 0 else status), said.decode(errors="replace").strip()

    def close(self) -> None:
        """Drop the program: sshd closes its stdin."""
        self._session.close()


class LocalLink:
    """This machine."""

    def __init__(self, host: str = "controller") -> None:
        self.host = host

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program here."""
        return LocalChannel(argv)

    def close(self) -> None:
        """Nothing to drop."""


class LocalChannel:
    """A program on this machine."""

    def __init__(self, argv: Sequence[str]) -> None:
        # A file, not a pipe: nobody has to read it meanwhile. A session of its own: Ctrl-C is for the runner alone.
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in result()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            raise RoundaboutError(f"cannot run {argv[0]}: {error.strerror}", "build it: make build") from error

    def read(self) -> bytes:
        """Block for some of its stdout; empty at the end."""
        assert self._process.stdout is not None
        return self._process.stdout.read(CHUNK_BYTES) or b""

    def write(self, data: bytes) -> None:
        """Write all of `data` to its stdin."""
        assert self._process.stdin is not None
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
        except BrokenPipeError:
            pass  # it ended: its exit status says why

    def close_stdin(self) -> None:
        """Tell the program to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def result(self) -> tuple[int | None, str]:
        """Exit status and stderr."""
        status = self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip()
        for stream in (self._stderr, self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        return status, said

    def close(self) -> None:
        """Kill the program."""
        self._process.kill()


@dataclass(frozen=True)
class Completed:
    """What a short program left."""

    status: int
    stdout: str
    stderr: str


def call(link: Link, argv: Sequence[str], stdin: str = "") -> Completed:
    """Run a short program to its end. Raises LostHostError."""
    channel = link.start(argv)
    channel.write(stdin.encode())
    channel.close_stdin()
    stdout = b"".join(iter(channel.read, b""))
    status, stderr = channel.result()
    if status is None:
        raise LostHostError(link.host, f"the connection broke during {argv[0]}")
    return Completed(status, stdout.decode(errors="replace"), stderr)


def check_call(link: Link, argv: Sequence[str], stdin: str = "") -> str:
    """Like `call`, for programs that must succeed: their stdout. Raises RoundaboutError with what they said."""
    done = call(link, argv, stdin)
    if done.status != 0:
        said = done.stderr.removeprefix("error: ") or f"exit status {done.status}"
        raise RoundaboutError(f"{link.host}: {' '.join(argv[:2])}: {said}")
    return done.stdout


class Program:
    """A long-running program whose lines one blocking thread collects.

    `on_line(program, line)` is called there for each line, and `on_line(program, None)` once at the end, after `status`
    (None: the connection broke) and `stderr` are set.
    """

    def __init__(
        self, name: str, link: Link, argv: Sequence[str], on_line: "Callable[[Program, str | None], None] | None" = None
    ) -> None:
        self.name, self.host = name, link.host
        self.lines: list[str] = []
        self.status: int | None = None
        self.stderr = ""
        self._on_line = on_line or (lambda _program, _line: None)
        self._channel = link.start(argv)
        self._thread = threading.Thread(target=self._collect, name=f"{name}@{link.host}", daemon=True)
        self._thread.start()

    def send(self, line: str) -> None:
        """Write a line to its stdin."""
        self._channel.write(f"{line}\n".encode())

    def close_stdin(self) -> None:
        """Tell it to end."""
        self._channel.close_stdin()

    def finish(self, patience_s: float = 5.0) -> None:
        """Wait for its end; drop it if it does not end."""
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self._channel.close()
            self._thread.join(patience_s)

    @property
    def ended(self) -> bool:
        """Whether it ended, however."""
        return not self._thread.is_alive()

    @property
    def lost(self) -> bool:
        """Whether it ended because its connection broke."""
        return self.ended and self.status is None

    def why_ended(self) -> str:
        """One line on how it ended."""
        if self.status is None:
            return "the connection broke"
        return self.stderr.splitlines()[-1] if self.stderr else f"exit status {self.status}"

    def _collect(self) -> None:
        rest = ""
        for chunk in iter(self._channel.read, b""):
            *whole, rest = (rest + chunk.decode(errors="replace")).split("\n")
            self.lines += whole
            for line in whole:
                self._on_line(self, line)
        self.status, self.stderr = self._channel.result()
        self._on_line(self, None)
