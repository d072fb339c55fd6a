# SPDX-License-Identifier: Apache-2.0
"""What strangers do to whatever listens: each returns the connections that it leaves open."""

import random
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress

MANY = 80
SLOW_S = 0.02  # between two bytes
Address = tuple[str, int]


def connect(address: Address) -> socket.socket:
    """A connection, once a program listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(address, timeout=20)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def says(address: Address, data: bytes) -> list[socket.socket]:
    """One that says something and waits; it may be shut out amid its words."""
    stranger = connect(address)
    with suppress(ConnectionResetError, BrokenPipeError):
        stranger.sendall(data)
    return [stranger]


def silent(address: Address, _hello: bytes) -> list[socket.socket]:
    """Many that say nothing."""
    return [connect(address) for _ in range(MANY)]


def hesitant(address: Address, hello: bytes) -> list[socket.socket]:
    """Many that send one byte, and wait."""
    return [each for _ in range(MANY) for each in says(address, hello[:1])]


def garbage(address: Address, hello: bytes) -> list[socket.socket]:
    """Noise, of all lengths around a hello's."""
    rng = random.Random(7)
    sizes = (1, len(hello) - 1, len(hello), len(hello) + 1, 4096)
    return [each for size in sizes for each in says(address, rng.randbytes(size))]


def oversized(address: Address, hello: bytes) -> list[socket.socket]:
    """A hello that does not end."""
    return says(address, hello[:8] + bytes(1 << 20))


def slow(address: Address, hello: bytes) -> list[socket.socket]:
    """A hello in pieces, and not the whole of it."""
    stranger = connect(address)
    with suppress(ConnectionResetError, BrokenPipeError):
        for byte in hello[:10]:
            stranger.sendall(bytes([byte]))
            time.sleep(SLOW_S)
    return [stranger]


def of_another_kind(address: Address, _hello: bytes) -> list[socket.socket]:
    """A browser."""
    return says(address, b"GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n".ljust(256, b" "))


def with_another_secret(address: Address, hello: bytes) -> list[socket.socket]:
    """A hello that is right but for its secret."""
    return says(address, hello.replace(b"open-sesame", b"open-sesamE"))


def gone(address: Address, hello: bytes) -> list[socket.socket]:
    """Some that leave at once, one of them amid a word, and without a goodbye."""
    connect(address).close()
    for words in (b"", hello[:5], hello[:-1]):
        stranger = connect(address)
        stranger.sendall(words)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        stranger.close()
    return []


STRANGERS: dict[str, Callable[[Address, bytes], list[socket.socket]]] = {
    each.__name__: each
    for each in (silent, hesitant, garbage, oversized, slow, of_another_kind, with_another_secret, gone)
}
