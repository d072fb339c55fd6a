# SPDX-License-Identifier: Apache-2.0
"""Random frames, whole and broken, and the files that hold them."""

import random
import struct
from collections.abc import Sequence
from typing import NamedTuple

ROCE_PORT = 4791
EXTENSIONS = (0, 43, 60)  # hop by hop, routing, destination options


class Frame(NamedTuple):
    """What was captured of a frame, its length on the wire, and when."""

    captured: bytes
    frame_bytes: int
    time_ns: int


def random_frame(rng: random.Random, time_ns: int) -> Frame:
    """A frame of TCP, RoCEv2 or something else, often tagged, fragmented, cut short or damaged."""
    frame = _ethernet(rng)
    damage = rng.random()
    if damage < 0.15:  # a few wrong bytes
        changed = bytearray(frame)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(min(len(changed), 80))] = rng.getrandbits(8)
        frame = bytes(changed)
    elif damage < 0.2:  # nothing but noise
        frame = rng.randbytes(rng.randint(1, 120))
    elif damage < 0.25:  # padded
        frame += bytes(rng.randint(1, 40))
    elif damage < 0.3:  # less than its headers say
        frame = frame[: rng.randint(1, len(frame))]
    kept = rng.choice((len(frame), len(frame), 128, rng.randint(1, 128)))
    return Frame(frame[:kept], len(frame), time_ns)


def _ethernet(rng: random.Random) -> bytes:
    kind = rng.random()
    ethertype, payload = (0x0800, _ipv4(rng)) if kind < 0.55 else (0x86DD, _ipv6(rng))
    if kind > 0.95:
        ethertype, payload = rng.choice((0x0806, 0x88CC, 0x8915)), rng.randbytes(rng.randint(0, 60))
    for _ in range(rng.choice((0, 0, 0, 1, 2, 3))):
        payload = struct.pack("!HH", rng.getrandbits(16), ethertype) + payload
        ethertype = 0x8100
    return rng.randbytes(6) + b"\x02" + rng.randbytes(5) + struct.pack("!H", ethertype) + payload


def _ipv4(rng: random.Random) -> bytes:
    options = rng.choice((b"", b"", b"", b"\x01" * 4, b"\x01" * 40))
    protocol, inside = _transport(rng)
    fragment = rng.choice((0, 0, 0, 0, 0x4000, 0x2000, 0x2000 | 185, 370))
    total = 20 + len(options) + len(inside)
    if rng.random() < 0.05:
        total = rng.choice((0, 10, total + 100, 65535))
    head = (0x40 | 5 + len(options) // 4, rng.getrandbits(8), total, rng.getrandbits(16), fragment, 64, protocol, 0)
    addresses = rng.choice((b"\x0a\0\0\x01\x0a\0\0\x02", b"\x0a\0\0\x02\x0a\0\0\x01", rng.randbytes(8)))
    return struct.pack("!BBHHHBBH", *head) + addresses + options + inside


def _ipv6(rng: random.Random) -> bytes:
    protocol, inside = _transport(rng)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        if rng.random() < 0.4:
            offset = rng.choice((0, 0, 1, 185)) << 3 | rng.getrandbits(1)
            inside = struct.pack("!BBHI", protocol, 0, offset, rng.getrandbits(32)) + inside
            protocol = 44
        else:
            words = rng.choice((0, 0, 1))
            # Padding options; of a routing header: no segments left.
            inside = bytes([protocol, words, 1, 4, 0, 0, 0, 0]) + b"\x01\x06" * words + bytes(6 * words) + inside
            protocol = rng.choice(EXTENSIONS)
    length = len(inside) if rng.random() > 0.05 else rng.choice((0, 4, 65535))
    head = struct.pack("!IHBB", 6 << 28 | rng.getrandbits(28), length, protocol, 64)
    return head + rng.randbytes(16) + rng.choice((rng.randbytes(16), bytes(10) + b"\xff\xff\x0a\0\0\x01")) + inside


def _transport(rng: random.Random) -> tuple[int, bytes]:
    data = rng.randbytes(rng.choice((0, 1, 3, 40, 1400)))
    kind = rng.random()
    if kind < 0.45:
        return 6, _tcp(rng) + data
    if kind < 0.85:
        roce = rng.random() < 0.7
        inside = _bth(rng) + data + rng.randbytes(4) if roce else data
        port = ROCE_PORT if roce else rng.choice((5000, 53))
        length = 8 + len(inside) if rng.random() > 0.05 else rng.choice((0, 7, 20, 60000))
        return 17, struct.pack("!HHHH", rng.randint(49152, 65535), port, length, 0) + inside
    return rng.choice((2, 132, 253)), data


def _tcp(rng: random.Random) -> bytes:
    options = rng.choice((b"", b"\x01" * 12, b"\x01" * 40))
    words = 5 + len(options) // 4 if rng.random() > 0.05 else rng.randrange(16)
    ports = (rng.randint(1024, 65535), rng.randint(1024, 65535))
    head = (*ports, rng.getrandbits(32), rng.getrandbits(32), words << 12 | rng.getrandbits(12), 512, 0, 0)
    return struct.pack("!HHIIHHHH", *head) + options


def _bth(rng: random.Random) -> bytes:
    opcode = rng.choice((0x81, 17, rng.randrange(24), rng.getrandbits(8)))
    words = (rng.getrandbits(24), rng.getrandbits(1) << 31 | rng.getrandbits(24))
    return struct.pack("!BBHII", opcode, rng.getrandbits(8) & 0xF0, 0xFFFF, *words) + rng.randbytes(16)


def pcap(frames: Sequence[Frame], order: str = "<", *, nanoseconds: bool = True, link_type: int = 1) -> bytes:
    """A pcap file; `order` is struct's."""
    parts = [struct.pack(f"{order}IHHIIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, 262144, link_type)]
    for frame in frames:
        seconds, rest = divmod(frame.time_ns, 10**9)
        stamp = (seconds, rest if nanoseconds else rest // 1000)
        parts += [struct.pack(f"{order}IIII", *stamp, len(frame.captured), frame.frame_bytes), frame.captured]
    return b"".join(parts)


def pcapng(frames: Sequence[Frame], order: str = "<", resolution: int = 9, link_type: int = 1) -> bytes:
    """A pcapng file whose stamps count in 10 ** -resolution seconds, with blocks of other kinds in between."""
    option = struct.pack(f"{order}HHBxxxHH", 9, 1, resolution, 0, 0)
    blocks = [
        _block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)),
        _block(order, 1, struct.pack(f"{order}HHI", link_type, 0, 0) + option),
    ]
    for number, frame in enumerate(frames):
        ticks = frame.time_ns * 10**resolution // 10**9
        head = (0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame.captured), frame.frame_bytes)
        blocks.append(_block(order, 6, struct.pack(f"{order}IIIII", *head) + _padded(frame.captured)))
        if number % 10 == 0:
            blocks.append(_block(order, 0xBAD, b"nothing"))
    return b"".join(blocks)


def _block(order: str, kind: int, body: bytes) -> bytes:
    size = struct.pack(f"{order}I", 12 + len(_padded(body)))
    return struct.pack(f"{order}I", kind) + size + _padded(body) + size


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
