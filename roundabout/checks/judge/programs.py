# SPDX-License-Identifier: Apache-2.0
"""The CPU time in eBPF struct_ops programs, from the kernel's statistics (bpf(2))."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundabout.core.bpf import call_bpf, words
from roundabout.core.errors import RoundaboutError

NEXT_ID, OPEN, ENABLE_STATISTICS = 11, 13, 32
STRUCT_OPS = "27"


@contextmanager
def enable_statistics() -> Iterator[None]:
    """Let the kernel measure the CPU time of eBPF programs for the duration of the block.

    The kernel measures while a descriptor is open, so that the end of this process also ends the measurement.
    """
    handle = call_bpf(ENABLE_STATISTICS, words(0, 0, 0, 0))
    if handle < 0:
        reason = os.strerror(ctypes.get_errno())
        raise RoundaboutError(f"cannot take eBPF programs' time: {reason}", "be root, on Linux 5.8 or later")
    try:
        yield
    finally:
        os.close(handle)


def program_times_ns() -> dict[int, int]:
    """Return the CPU time in each struct_ops program, in ns since the measurement began, by the program's id."""
    found: dict[int, int] = {}
    attributes = words(0, 0, 0, 0)
    while call_bpf(NEXT_ID, attributes) == 0:
        attributes[0] = attributes[1]  # the next search begins behind the one found
        handle = call_bpf(OPEN, words(attributes[0], 0, 0, 0))
        if handle < 0:
            continue  # gone since
        try:
            lines = Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines()
        finally:
            os.close(handle)
        said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if said.get("prog_type") == STRUCT_OPS:
            found[attributes[0]] = int(said.get("run_time_ns", 0))
    return found
