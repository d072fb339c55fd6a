# SPDX-License-Identifier: Apache-2.0
"""The CPU time in eBPF struct_ops programs, from the kernel's statistics (bpf(2))."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundabout.core.errors import RoundaboutError

SYSCALL = {"x86_64": 321, "aarch64": 280}
NEXT_ID, OPEN, ENABLE_STATISTICS = 11, 13, 32
STRUCT_OPS = "27"
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def enable_statistics() -> Iterator[None]:
    """Let the kernel measure the CPU time of eBPF programs for the duration of the block.

    The kernel measures while a descriptor is open, so that the end of this process also ends the measurement.
    """
    handle = _bpf(ENABLE_STATISTICS, (ctypes.c_uint32 * 4)())
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
    attributes = (ctypes.c_uint32 * 4)()
    while _bpf(NEXT_ID, attributes) == 0:
        attributes[0] = attributes[1]  # the next search begins behind the one found
        handle = _bpf(OPEN, (ctypes.c_uint32 * 4)(attributes[0]))
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


def _bpf(command: int, attributes: "ctypes.Array[ctypes.c_uint32]") -> int:
    number = SYSCALL.get(os.uname().machine)
    if number is None:
        raise RoundaboutError(f"found a machine of kind {os.uname().machine}, expected one of {', '.join(SYSCALL)}")
    return int(_libc.syscall(number, command, ctypes.byref(attributes), ctypes.sizeof(attributes)))
