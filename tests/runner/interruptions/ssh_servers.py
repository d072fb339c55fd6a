# SPDX-License-Identifier: Apache-2.0
"""Connections to SSH servers in a thread of the test."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import fabric
import paramiko

HOST_KEY = paramiko.ECDSAKey.generate()


@contextmanager
def connected_to(
    server: paramiko.ServerInterface, accepted: Callable[[], object] = lambda: None
) -> Iterator[fabric.Connection]:
    """Yield a connection, not yet open, to an SSH server, which calls `accepted` before it says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            their_end, _ = listening.accept()
            accepted()
            with suppress(EOFError, OSError, paramiko.SSHException):  # the client did not wait
                transport = paramiko.Transport(their_end)
                transport.add_server_key(HOST_KEY)
                transport.start_server(server=server)

        threading.Thread(target=serve, daemon=True).start()
        password = {"password": "", "allow_agent": False, "look_for_keys": False}
        config = fabric.Config(ssh_config=paramiko.SSHConfig())
        address, port = listening.getsockname()
        with closing(fabric.Connection(address, "me", port, config=config, connect_kwargs=password)) as connection:
            yield connection
