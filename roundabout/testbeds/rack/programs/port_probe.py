# SPDX-License-Identifier: Apache-2.0
"""Listens at TCP ports, or connects to those of another server, to find firewalls. It sends no data.

roundabout/testbeds/rack/port_check.py starts it:

    listen ADDRESS PORT...       prints the ports that were free, and closes each connection until stdin ends
    connect FROM ADDRESS PORT... prints the failure of each port that cannot be reached
"""

import contextlib
import json
import selectors
import signal
import socket
import sys

LISTEN_S = 60  # the longest time for which ports are open
CONNECT_S = 3


def bound(address, ports):
    """Yield a listening socket for each port that no other program has."""
    for port in ports:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            listener.bind((address, port))
            listener.listen()
            yield listener


def listen(address, ports):
    """Print the free ports, and close connections to them until stdin ends."""
    signal.alarm(LISTEN_S)
    listeners = list(bound(address, ports))
    print(json.dumps([listener.getsockname()[1] for listener in listeners]), flush=True)
    with selectors.DefaultSelector() as selector:
        for source in (sys.stdin, *listeners):
            selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    return
                key.fileobj.accept()[0].close()


def connect(own, address, ports):
    """Print the ports that cannot be reached from an address of this server, each with the reason."""
    failures = {}
    for port in ports:
        try:
            socket.create_connection((address, port), CONNECT_S, (own, 0)).close()
        except OSError as error:
            failures[port] = error.strerror or str(error)
    print(json.dumps(failures))


def main():
    """Listen or connect, as the first argument says."""
    if sys.argv[1] == "listen":
        listen(sys.argv[2], [int(port) for port in sys.argv[3:]])
    else:
        connect(sys.argv[2], sys.argv[3], [int(port) for port in sys.argv[4:]])


if __name__ == "__main__":
    main()
