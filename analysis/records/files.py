# SPDX-License-Identifier: Apache-2.0
"""Files of records, as they are or gzipped, with or without a byte order mark."""

import codecs
import gc
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from analysis.records.call import RecordError

GZIP = b"\x1f\x8b"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
HEAD_BYTES = 1 << 16
"""Number of a file's first bytes from which its format is determined."""


@contextmanager
def open_record(path: Path) -> Iterator[BinaryIO]:
    """Yield a file's content without its byte order mark, unpacked if it is gzipped, and UTF-16 as UTF-8.

    Raises RecordError for a file that cannot be read or unpacked, and for a pipe, whose writer may never come.
    """
    if path.exists() and not path.is_file():
        raise RecordError(f"{path}: found no plain file, expected one")
    try:
        with path.open("rb") as file:
            yield _decode(_unpack(_unpack(file)))
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RecordError(f"{path}: cannot be read: {why}") from error


def _unpack(file: BinaryIO) -> BinaryIO:
    """Return a file without one gzip around it. Some are packed twice, by a profiler and by a later copy."""
    packed = file.read(len(GZIP)) == GZIP
    file.seek(0)
    return cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb")) if packed else file


def _decode(file: BinaryIO) -> BinaryIO:
    mark = file.read(len(codecs.BOM_UTF8))
    if mark.startswith(UTF_16):
        file.seek(0)
        return cast("BinaryIO", codecs.EncodedFile(file, "utf-8", "utf-16", errors="replace"))
    if mark != codecs.BOM_UTF8:
        file.seek(0)
    return file


def read_head(path: Path) -> bytes:
    """Return the first `HEAD_BYTES` of a file's unpacked content, or all of a shorter file. Raises RecordError."""
    with open_record(path) as file:
        return file.read(HEAD_BYTES)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Stop the garbage collector, whose repeated walks of a growing tree take half of the time of parsing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
