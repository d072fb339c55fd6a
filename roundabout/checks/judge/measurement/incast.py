# SPDX-License-Identifier: Apache-2.0
"""Incast: many senders answer one receiver at the same time."""

import selectors
import socket
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from roundabout.checks.judge.measurement.iperf_flows import StuckError
from roundabout.checks.judge.measurement.sandbox import NetnsHost
from roundabout.testbeds.lab.network.namespaces import run_inside

FLOWS, ROUNDS, BYTES = 16, 5, 256 << 10  # flows of an incast, repetitions, and bytes of each flow
CONNECT_TIMEOUT_S, TRANSFER_TIMEOUT_S = 5.0, 30.0
RESET = struct.pack("ii", 1, 0)  # value of SO_LINGER that discards unsent data at close


def measure_incast(senders: Sequence[NetnsHost], receiver: NetnsHost, flows: int, each_bytes: int) -> float:
    """Let `flows` connections, spread among `senders`, each send `each_bytes` at once to the receiver.

    Return the seconds from the start to the last byte. Raises StuckError after `TRANSFER_TIMEOUT_S`.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(run_inside(receiver.pid, lambda: socket.create_server((receiver.address, 0))))
        listener.settimeout(CONNECT_TIMEOUT_S)
        pairs = [_connect(senders[number % len(senders)], listener, stack) for number in range(flows)]
        threads = [threading.Thread(target=_send, args=(one, each_bytes), daemon=True) for one, _ in pairs]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        _receive([other for _, other in pairs], flows * each_bytes)
        return time.monotonic() - begin


def _connect(sender: NetnsHost, listener: socket.socket, stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    address = listener.getsockname()
    one = stack.enter_context(
        run_inside(sender.pid, lambda: socket.create_connection(address, timeout=CONNECT_TIMEOUT_S))
    )
    other = stack.enter_context(listener.accept()[0])
    for end in (one, other):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    one.settimeout(TRANSFER_TIMEOUT_S)
    return one, other


def _send(one: socket.socket, each_bytes: int) -> None:
    with suppress(OSError):  # the receiver reports missing bytes
        one.sendall(bytes(each_bytes))


def _receive(others: Sequence[socket.socket], wanted: int) -> None:
    deadline = time.monotonic() + TRANSFER_TIMEOUT_S
    room, got = bytearray(1 << 18), 0
    with selectors.DefaultSelector() as ready:
        for other in others:
            ready.register(other, selectors.EVENT_READ)
        while got < wanted:
            if time.monotonic() > deadline:
                raise StuckError(f"incast: found {got} bytes after {TRANSFER_TIMEOUT_S:.0f} s, expected {wanted}")
            for key, _ in ready.select(0.5):
                assert isinstance(key.fileobj, socket.socket)
                got += key.fileobj.recv_into(room)
