# SPDX-License-Identifier: Apache-2.0
"""Files of records, as they are or gzipped."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from analysis.records.call import RecordError

GZIP = b"\x1f\x8b"
HEAD_BYTES = 1 << 16
"""From which the format is told."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """What a file holds, unpacked where it is gzipped. Raises RecordError for one that cannot be read, or unpacked."""
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            yield cast("BinaryIO", gzip.GzipFile(fileobj=file)) if packed else file
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RecordError(f"{path}: cannot be read: {why}") from error


def head(path: Path) -> bytes:
    """Its beginning: `HEAD_BYTES`, or all where it is shorter. Raises RecordError."""
    with opened(path) as file:
        return file.read(HEAD_BYTES)
