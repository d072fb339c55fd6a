# SPDX-License-Identifier: Apache-2.0
"""The system call bpf(2)."""

import ctypes
import os

from roundabout.core.errors import RoundaboutError

SYSCALL = {"x86_64": 321, "aarch64": 280}
CREATE_MAP, LRU_HASH = 0, 9  # command; type of map, which always needs CAP_BPF
_libc = ctypes.CDLL(None, use_errno=True)


def call_bpf(command: int, attributes: "ctypes.Array[ctypes.c_uint32]") -> int:
    """Call bpf(2) and return its result: -1 after an error, which `ctypes.get_errno` has. May change `attributes`.

    Raises RoundaboutError if the number of the system call is unknown for this machine.
    """
    number = SYSCALL.get(os.uname().machine)
    if number is None:
        raise RoundaboutError(f"found a machine of kind {os.uname().machine}, expected one of {', '.join(SYSCALL)}")
    return int(_libc.syscall(number, command, ctypes.byref(attributes), ctypes.sizeof(attributes)))


def words(*values: int) -> "ctypes.Array[ctypes.c_uint32]":
    """Return attributes of bpf(2): words of 32 bits."""
    return (ctypes.c_uint32 * len(values))(*values)


def find_bpf_error() -> int:
    """Create a map, as programs do when they load, and return 0 or the error number."""
    key_bytes, value_bytes, entries = 4, 4, 1
    handle = call_bpf(CREATE_MAP, words(LRU_HASH, key_bytes, value_bytes, entries))
    if handle < 0:
        return ctypes.get_errno()
    os.close(handle)
    return 0
