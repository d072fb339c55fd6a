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


class Interface(NamedTuple):
    """An interface of a pcapng section; `resolution` is its if_tsresol, `offset_s` its if_tsoffset."""

    link_type: int = 1
    resolution: int = 9
    offset_s: int = 0

    def ticks(self, time_ns: int) -> int:
        """Return the stamp of an instant."""
        power = self.resolution & 0x7F
        per_s = 2**power if self.resolution & 0x80 else 10**power
        return (time_ns - self.offset_s * 10**9) * per_s // 10**9


def pcapng(frames: Sequence[Frame], order: str = "<", resolution: int = 9, link_type: int = 1) -> bytes:
    """Return a section of one interface whose stamps count in 10 ** -resolution seconds, with a few custom blocks."""
    packets = [(0, frame) for frame in frames]
    return section([Interface(link_type, resolution)], packets, order, between=block(order, 0xBAD, b"nothing"))


def section(
    interfaces: Sequence[Interface],
    packets: Sequence[tuple[int, Frame]],
    order: str = "<",
    *,
    kind: int = 6,
    between: bytes = b"",
) -> bytes:
    """Return a section of pcapng with frames, each after the number of its interface.

    `kind` is the type of their blocks: 6, or 2 for the obsolete ones. `between` follows every tenth.
    """
    blocks = [block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for each in interfaces:
        resolution = struct.pack(f"{order}HHBxxx", 9, 1, each.resolution)
        offset = struct.pack(f"{order}HHq", 14, 8, each.offset_s)
        head = struct.pack(f"{order}HHI", each.link_type, 0, 0)
        blocks.append(block(order, 1, head + resolution + offset + bytes(4)))
    for count, (number, frame) in enumerate(packets):
        ticks = interfaces[number].ticks(frame.time_ns)
        first = struct.pack(f"{order}I" if kind == 6 else f"{order}Hxx", number)
        rest = (ticks >> 32, ticks & 0xFFFFFFFF, len(frame.captured), frame.frame_bytes)
        blocks.append(block(order, kind, first + struct.pack(f"{order}IIII", *rest) + frame.captured))
        if count % 10 == 0:
            blocks.append(between)
    return b"".join(blocks)


def block(order: str, kind: int, body: bytes) -> bytes:
    """Return a block of pcapng."""
    size = struct.pack(f"{order}I", 12 + len(_padded(body)))
    return struct.pack(f"{order}I", kind) + size + _padded(body) + size


# Link type -> the bytes before and behind the EtherType in its header; Ethernet has 12 before.
LINK_HEADERS = {
    1: (bytes(12), b""),
    113: (b"\0\0\0\x01\0\x06" + bytes(8), b""),
    276: (b"", bytes(6) + b"\0\x01\0\x06" + bytes(8)),
}
RAW = {101: (4, 6), 12: (4, 6), 14: (4, 6), 228: (4,), 229: (6,)}  # link type -> IP versions
LOOPBACK = {0: "<", 108: ">"}  # link type -> order of the address family


def on_link(link_type: int, frame: Frame) -> Frame | None:
    """Return an Ethernet frame's content as a frame of another link; None where that link cannot carry it."""
    ethertype, content = frame.captured[12:14], frame.captured[14:]
    if len(ethertype) < 2:
        return None
    version = {b"\x08\x00": 4, b"\x86\xdd": 6}.get(ethertype)
    if link_type in LINK_HEADERS:
        before, behind = LINK_HEADERS[link_type]
        header = before + ethertype + behind
    elif version is None:
        return None
    elif link_type in LOOPBACK:
        header = struct.pack(f"{LOOPBACK[link_type]}I", {4: 2, 6: 30}[version])
    elif version in RAW[link_type] and content and content[0] >> 4 == version:
        header = b""
    else:
        return None
    return Frame(header + content, len(header) + frame.frame_bytes - 14, frame.time_ns)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
