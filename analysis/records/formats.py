# SPDX-License-Identifier: Apache-2.0
"""The formats that can be read. Which one a file is, its content tells, never its name."""

import re
from pathlib import Path
from typing import Protocol

from analysis.records import chakra, inspector, kineto, nccl_tests
from analysis.records.call import Record, RecordError
from analysis.records.files import head
from analysis.records.nccl_tests import Fabric

SHOWN_BYTES = 40
EXECUTION_TRACE = re.compile(rb'\s*\{.*"nodes"\s*:\s*\[', re.DOTALL)
SCHEMA = re.compile(rb'"(schema|op_schema|rf_id)"\s*:')
"""Fields of PyTorch's ExecutionTraceObserver: a schema beside its nodes, or in each."""


class Format(Protocol):
    """A module that reads one format of records: one file is what one process recorded.

    A format that is no record of a job, but of what a fabric gives, is `nccl_tests` instead; its `read` says what.
    """

    NAME: str
    """As people know it, such as `PyTorch Kineto's trace`."""

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins so (`files.head`, unpacked) is of this format, whatever is wrong with the rest."""

    def read(self, path: Path) -> Record:
        """What the process recorded; by `files.opened`, which unpacks. Raises RecordError."""


FORMATS: tuple[Format, ...] = (kineto, inspector, chakra)


def format_of(path: Path) -> Format:
    """The format of a file. Raises RecordError for one of none."""
    beginning = head(path)
    found = next((each for each in FORMATS if each.recognises(beginning)), None)
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


def fabric_of(path: Path) -> Fabric | None:
    """What a fabric gives, where the file is a record of that; None for any other. Raises RecordError."""
    return nccl_tests.read(path) if nccl_tests.recognises(head(path)) else None
