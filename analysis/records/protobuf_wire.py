# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers without their schema: concatenated messages, and each one's fields.

Source: protobuf.dev, Encoding; parseDelimitedFrom's framing, a message's length before it.
"""

from collections.abc import Iterator
from typing import BinaryIO

from analysis.records.fields import FieldError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
VARINT_BYTES = 10
MOST_BYTES = 1 << 28
"""Of one message; one that says that it is longer is none."""


def read_messages(file: BinaryIO) -> Iterator[bytes]:
    """Yield each message of a file. Raises FieldError for a truncated one."""
    while first := file.read(1):
        size = first
        while size[-1] & 0x80 and len(size) < VARINT_BYTES:
            size += file.read(1) or b"\0"
        length, _ = read_varint(size, 0)
        message = file.read(length) if length <= MOST_BYTES else b""
        if len(message) != length:
            raise FieldError(f"found {len(message)} bytes of a message, expected {length}: cut off, or none of Chakra")
        yield message


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: varints as unsigned numbers, all others as bytes. Raises FieldError."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = read_varint(message, at)
            yield number, value
            continue
        if kind == LENGTH:
            size, at = read_varint(message, at)
        elif kind in FIXED_BYTES:
            size = FIXED_BYTES[kind]
        else:
            raise FieldError(f"found a field of wire type {kind}, expected one of protocol buffers, version 3")
        if at + size > len(message):
            raise FieldError(f"field {number}: found {len(message) - at} bytes, expected {size}")
        yield number, message[at : at + size]
        at += size


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned number at a place, and the place after it. Raises FieldError."""
    value = 0
    for place, byte in enumerate(data[at : at + VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return value & (2**64 - 1), at + place + 1
    raise FieldError("found a number without end, expected one of 10 bytes at most")
