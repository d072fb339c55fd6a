# SPDX-License-Identifier: Apache-2.0
"""Reads what PyTorch's profiler (Kineto) writes of one rank: a trace in Chrome's JSON."""

from pathlib import Path

from analysis.records.call import Record

NAME = "PyTorch Kineto's trace"


def recognises(head: bytes) -> bool:
    """See `formats.Format`."""
    return head.lstrip().startswith(b"{") and (b'"traceEvents"' in head or b'"deviceProperties"' in head)


def read(path: Path) -> Record:
    """See `formats.Format`."""
    raise NotImplementedError
