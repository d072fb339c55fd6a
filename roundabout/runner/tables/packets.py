# SPDX-License-Identifier: Apache-2.0
"""Conversion of captures to tables: collectors/decoder parses packets, and its records become columns.

Only one block of records is in memory at a time. Each block becomes one row group.
"""

import fcntl
import json
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.store import files, schemas

DECODE = ROOT / "build/bin/decode"
PIPE_BYTES = 1 << 20

# Formats of collectors/decoder/blocks.cpp, which must be the same there.
HEADER = struct.Struct("=4sIII")  # tag, number of addresses, number of rows, bytes of the body
ADDRESS = struct.Struct("=16sI")  # address (IPv4 in the first four bytes), IP version
UNDECODED = pa.array(["", "truncated", "not IP", "malformed", "link type", "protocol", "fragment"])
DIRECTIONS = pa.array(["out", "in"])


class DecodeError(RoundaboutError):
    """Error for captures that cannot be decoded."""


@dataclass(frozen=True)
class Pauses:
    """The numbers of pauses of one priority (IEEE 802.1Qbb), or of whole links (802.3x) if `priority` is None.

    `resumes` counts the frames among `frames` that end a pause. `quanta` is the sum of the frames' times, of which one
    is 512 bit times of the link.
    """

    priority: int | None
    frames: int
    resumes: int
    quanta: int


@dataclass(frozen=True)
class Totals:
    """The numbers of decoded and undecoded packets in captures.

    `undecoded_protocols` has the number of packets by the protocol at which decoding ended. `unnumbered` counts packets
    of flows beyond the first million. `damage` has a text for each file with an unreadable end. `skipped` has one for
    each type of unknown block.
    """

    packets: int
    truncated: int
    not_ip: int
    malformed: int
    undecoded_protocols: dict[str, int]
    pauses: tuple[Pauses, ...]
    flows: int
    unnumbered: int
    damage: tuple[str, ...]
    skipped: tuple[str, ...]


def write_parquet(captures: Sequence[Path], path: Path, own: Sequence[str] = ()) -> Totals:
    """Decode captures, in the given order, into one Parquet file with the columns of `packets` except the common ones.

    `own` are addresses of the capturing host, which determine a packet's direction. Raises DecodeError.
    """
    schema = schemas.bare_schema("packets")
    with open_parquet(path, schema) as writer:
        return decode(captures, own, lambda columns: writer.write_batch(pa.record_batch(columns, schema=schema)))


@contextmanager
def open_parquet(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Yield a Parquet writer for packets. The file `path` appears only when it is complete.

    Raises StoreError, for example if the disk is full.
    """
    rising = {"time_ns", "host_ns", "controller_ns"}  # kept as differences
    plain = {"tcp_seq", "tcp_ack", "psn", *rising}  # hardly a value comes twice: a dictionary would only cost time
    with (
        files.replace_file(path) as file,  # a file of ours, since Arrow's own would hide why a write failed
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in schema.names if name not in plain],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name in rising},
        ) as writer,
    ):
        yield writer


def decode(captures: Sequence[Path], own: Sequence[str], write: Callable[[list[pa.Array]], None]) -> Totals:
    """Decode captures and call `write` with each block's columns of `packets`, except the common ones.

    `own` are addresses of the capturing host. Raises DecodeError.
    """
    argv = [str(DECODE), *(["--own", ",".join(own)] if own else []), "--", *map(str, captures)]
    with tempfile.TemporaryFile() as said, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=said) as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        totals = _write_blocks(process.stdout, write)
        process.wait()
        if totals is None:
            said.seek(0)
            why = said.read().decode(errors="replace").strip() or f"it ended with status {process.returncode}"
            raise DecodeError(why.removeprefix("decode: "))
    return totals


def _write_blocks(stream: IO[bytes], write: Callable[[list[pa.Array]], None]) -> Totals | None:
    """Write one block while the next one is read. Return None if the stream ends before its totals."""
    with ThreadPoolExecutor(1, thread_name_prefix="packets") as pool:
        writing: Future[None] | None = None
        for block in _blocks(stream):
            if writing is not None:
                writing.result()
            if block.tag == b"DONE":
                said = json.loads(block.body)
                pauses = tuple(Pauses(**each) for each in said["pauses"])
                return Totals(**said | {"pauses": pauses} | {name: tuple(said[name]) for name in ("damage", "skipped")})
            writing = pool.submit(write, _columns(block))
    return None


class _Block(NamedTuple):
    tag: bytes
    rows: int
    addresses: list[str]
    body: bytes  # columns, or the totals of a `DONE`


def _blocks(stream: IO[bytes]) -> Iterator[_Block]:
    """Yield all blocks of the decoder's output except a torn one."""
    while len(header := stream.read(HEADER.size)) == HEADER.size:
        tag, addresses, rows, size = HEADER.unpack(header)
        known = [_text(*each) for each in ADDRESS.iter_unpack(stream.read(addresses * ADDRESS.size))]
        body = stream.read(size)
        if len(body) == size:
            yield _Block(tag, rows, known, body)


def _text(address: bytes, version: int) -> str:
    return socket.inet_ntop(socket.AF_INET6, address) if version == 6 else socket.inet_ntop(socket.AF_INET, address[:4])


def _columns(block: _Block) -> list[pa.Array]:
    """Return the body as Arrow arrays, in place.

    For each column a bitmap of known values and the values, in whole words.
    """
    names = {"direction": DIRECTIONS, "undecoded": UNDECODED}
    addresses = pa.array(block.addresses, pa.string())
    body, at = pa.py_buffer(block.body), 0
    columns = []
    for column in schemas.TABLES["packets"]:
        indexed = pa.types.is_dictionary(column.type)
        kind = column.type.index_type if indexed else column.type
        buffers = []
        for bits in (1, kind.bit_width):
            buffers.append(body.slice(at, _words(block.rows * bits)))
            at += _words(block.rows * bits)
        values = pa.Array.from_buffers(kind, block.rows, buffers)
        text = names.get(column.name, addresses)
        columns.append(pa.DictionaryArray.from_arrays(values, text) if indexed else values)
    return columns


def _words(bits: int) -> int:
    """Return the bytes of the whole 64-bit words that hold so many bits."""
    return -(-bits // 64) * 8
