# SPDX-License-Identifier: Apache-2.0
"""Connections to hosts: one for each host and run, over which programs are started.

Fabric connects. Programs run in sessions of its paramiko transport, because Fabric's own `run` polls each command's
streams a hundred times a second, which takes CPU from the measurement. Here every read blocks.
"""

import os
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import BUILD
from roundabout.runner.hosts.deadlines import within

if TYPE_CHECKING:
    import paramiko

WINDOW_BYTES = 16 << 20  # holds the output of a whole trial, so that a collector never waits for a round trip
CHUNK_BYTES = 1 << 16
OPEN_S, START_S = 30, 20  # time limits of opening a connection and of starting a program; a slower host is lost
END_TIMEOUT_S = 2  # time limit of a ProxyCommand to end after a signal


class LostHostError(RoundaboutError):
    """Error for a broken connection to a host."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"lost host {host}: {why}")
        self.host = host


class Channel(Protocol):
    """The standard streams of a running program."""

    def read(self) -> bytes:
        """Block until the program prints to stdout, and return the bytes. Return empty bytes at the end of stdout."""

    def write(self, data: bytes) -> None:
        """Write all of `data` to the program's stdin. If the program ended, `result` raises the reason.

        Raises LostHostError.
        """

    def close_stdin(self) -> None:
        """Close the program's stdin, which makes it end."""

    def result(self) -> tuple[int | None, str]:
        """Return the exit status (None if the connection broke) and stderr. Call it after the end of stdout."""

    def close(self) -> None:
        """Close the program's streams without waiting for its end."""


class Connection(Protocol):
    """A connection to one host."""

    host: str

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program on the host. Raises LostHostError."""

    def close(self) -> None:
        """Close the connection and all programs that were started over it."""


class Tunnel:
    """A running ProxyCommand that is connected to a real socket.

    Paramiko's own class does not notice the end of the command and spins, so a lost host would not be detected. The
    command runs in a session of its own. Ctrl-C does not end it, because cleanup still needs the hosts.
    """

    def __init__(self, command: str) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            self._process = subprocess.Popen(
                shlex.split(command), stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True
            )

    def close(self) -> None:
        """End the proxy command."""
        self.socket.close()
        self._process.terminate()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class SshConnection:
    """A connection to a host over SSH. The constructor opens `connection`, a fabric.Connection."""

    def __init__(self, host: str, connection: Any) -> None:
        self.host = host
        self._connection = connection
        self._tunnel: Tunnel | None = None
        try:
            if isinstance(connection.gateway, str):  # its ssh_config has a ProxyCommand
                self._tunnel = Tunnel(_expand_tokens(connection.gateway, host))
                connection.gateway = None
                connection.connect_kwargs["sock"] = self._tunnel.socket
            with self._within(OPEN_S):
                connection.open()
        except _broken() as error:
            self.close()
            raise LostHostError(host, f"cannot connect: {error}") from error

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program on the host. Raises LostHostError."""
        try:
            with self._within(START_S):
                session = self._connection.transport.open_session(window_size=WINDOW_BYTES)
                session.exec_command(shlex.join(argv))
        except _broken() as error:
            raise LostHostError(self.host, str(error) or type(error).__name__) from error
        return SshChannel(self.host, session)

    def close(self) -> None:
        """Close the connection and its proxies, which unblocks everything that waits for the host."""
        hop = self._connection
        while hasattr(hop, "client"):
            hop.client.close()
            hop = hop.gateway
        if self._tunnel:
            self._tunnel.close()

    @contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Close the connection if the context lasts longer. Raises TimeoutError then."""
        with within(seconds, self.close) as overdue:
            try:
                yield
            except _broken():
                if overdue.is_set():
                    raise TimeoutError(f"no answer within {seconds:g} s") from None
                raise


def _broken() -> tuple[type[Exception], ...]:
    """Return the exceptions for a broken connection: paramiko's, and AttributeError if it was closed meanwhile."""
    from paramiko import SSHException  # noqa: PLC0415 - only connections by SSH need it

    return (SSHException, OSError, EOFError, AttributeError)


def _expand_tokens(proxy_command: str, host: str) -> str:
    """Return the command with ssh_config's %h and similar tokens replaced."""
    import paramiko  # noqa: PLC0415 - only connections by SSH need it

    config = paramiko.SSHConfig.from_text(f"Host {host}\n  ProxyCommand {proxy_command}\n")
    return str(config.lookup(host)["proxycommand"])


class SshChannel:
    """A program on a host reached over SSH."""

    def __init__(self, host: str, session: "paramiko.Channel") -> None:
        self._host, self._session = host, session
        self._stderr: list[bytes] = []
        # Both streams share a window: without a reader of stderr, a program that prints much there would wait for ever.
        self._draining = threading.Thread(target=self._drain, name="stderr", daemon=True)
        self._draining.start()

    def read(self) -> bytes:
        """Block until the program prints to stdout. Return empty bytes at the end, or if the connection broke."""
        return self._session.recv(CHUNK_BYTES)

    def write(self, data: bytes) -> None:
        """Write all of `data` to the program's stdin. If the program ended, `result` raises the reason.

        Raises LostHostError.
        """
        try:
            self._session.sendall(data)
        except _broken() as error:
            transport = self._session.transport
            if transport is None or not transport.is_active():
                raise LostHostError(self._host, str(error) or "the connection broke") from error

    def close_stdin(self) -> None:
        """Close the program's stdin, which makes it end."""
        with suppress(*_broken()):  # it may be gone already, which is what was wanted
            self._session.shutdown_write()

    def result(self) -> tuple[int | None, str]:
        """Return exit status (None: the connection broke) and stderr."""
        status = self._session.recv_exit_status()
        self._draining.join()
        return (None if status < 0 else status), b"".join(self._stderr).decode(errors="replace").strip()

    def close(self) -> None:
        """Close the channel. sshd then closes the program's stdin."""
        with suppress(*_broken()):
            self._session.close()

    def _drain(self) -> None:
        self._stderr += iter(lambda: self._session.recv_stderr(CHUNK_BYTES), b"")


class LocalConnection:
    """A connection to this machine, without SSH."""

    def __init__(self, host: str = "controller") -> None:
        self.host = host
        self._channels: WeakSet[LocalChannel] = WeakSet()

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program on this machine."""
        channel = LocalChannel(argv)
        self._channels.add(channel)
        return channel

    def close(self) -> None:
        """Kill all programs that were started over the connection: Ctrl-C may have lost their only other reference."""
        for channel in list(self._channels):
            channel.close()


class LocalChannel:
    """A program on this machine."""

    def __init__(self, argv: Sequence[str]) -> None:
        # A file needs no reader while the program runs, unlike a pipe. In its own session, the program gets no Ctrl-C.
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in result()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
                close_fds=False,  # it holds the machine's lease along
            )
        except OSError as error:
            self._stderr.close()
            raise RoundaboutError(f"cannot run {argv[0]}: {error.strerror}", f"build it: {BUILD}") from error

    def read(self) -> bytes:
        """Block for some of the program's stdout; return empty bytes at its end."""
        assert self._process.stdout is not None
        return self._process.stdout.read(CHUNK_BYTES) or b""

    def write(self, data: bytes) -> None:
        """Write all of `data` to the program's stdin."""
        assert self._process.stdin is not None
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
        except (BrokenPipeError, ValueError):  # the latter where its stdin is closed
            pass  # it ended: its exit status says why

    def close_stdin(self) -> None:
        """Close the program's stdin, which makes it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def result(self) -> tuple[int | None, str]:
        """Return exit status and stderr."""
        status = self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip()
        for stream in (self._stderr, self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        return status, said

    def close(self) -> None:
        """Kill the program and its children."""
        if self._process.returncode is None:  # its number, which is its group's, cannot be another's yet
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
