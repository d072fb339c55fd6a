# SPDX-License-Identifier: Apache-2.0
"""The formats that can be read. A file's content determines its format, never its name."""

import re
from pathlib import Path
from typing import Protocol

from analysis.records.call import Record, RecordError
from analysis.records.files import read_head
from analysis.records.readers import chakra, inspector, kineto, nccl_tests
from analysis.records.readers.nccl_tests import Fabric

SHOWN_BYTES = 40
EXECUTION_TRACE = re.compile(rb'\s*\{.*"nodes"\s*:\s*\[', re.DOTALL)
SCHEMA = re.compile(rb'"(schema|op_schema|rf_id)"\s*:')
"""Fields by which a trace of PyTorch's ExecutionTraceObserver is recognized, to refuse it with a hint."""


class Format(Protocol):
    """A module that reads one format of records, in which a file is the record of one process.

    The module `nccl_tests` differs: its files hold a fabric's speed and no job, and its `read` returns a `Fabric`.
    """

    NAME: str
    """The format's name in messages, such as `PyTorch Kineto's trace`."""

    def recognizes(self, head: bytes) -> bool:
        """Return True if a file that begins with `head` (unpacked) is of this format, whatever follows."""

    def read(self, path: Path) -> Record:
        """Return the record in a file, which may be gzipped (see `files.open_record`). Raises RecordError."""


FORMATS: tuple[Format, ...] = (kineto, inspector, chakra)


def format_of(path: Path) -> Format:
    """Return the module that reads a file's format. Raises RecordError for an unknown format."""
    beginning = read_head(path)
    found = next((each for each in FORMATS if each.recognizes(beginning)), None)
    if found is None and EXECUTION_TRACE.match(beginning) and SCHEMA.search(beginning):
        what = "PyTorch's execution trace, in which nothing says when a collective ran"
        raise RecordError(
            f"{path}: found {what}, expected {kineto.NAME}", "give the Kineto trace that was recorded with it"
        )
    if found is None:
        shown = repr(beginning[:SHOWN_BYTES].decode(errors="replace")) if beginning else "nothing"
        expected = ", ".join([*(each.NAME for each in FORMATS), nccl_tests.NAME])
        raise RecordError(f"{path}: found a file that begins with {shown}, expected one of: {expected}")
    return found


def is_record(path: Path) -> bool:
    """Return True if a file's beginning is that of a known format. Raises RecordError if it cannot be read."""
    beginning = read_head(path)
    return nccl_tests.recognizes(beginning) or any(each.recognizes(beginning) for each in FORMATS)


def fabric_of(path: Path) -> Fabric | None:
    """Return the fabric's speed in a file of nccl-tests; None for a file of another format. Raises RecordError."""
    return nccl_tests.read(path) if nccl_tests.recognizes(read_head(path)) else None
