# SPDX-License-Identifier: Apache-2.0
"""Programs that are killed right after one of their system calls."""

import ctypes
import os
import platform
import signal
from collections.abc import Sequence

CALLS = {
    "x86_64": {"bpf": 321, "mkdir": 83, "rmdir": 84, "unlink": 87},
    "aarch64": {"bpf": 280, "mkdir": 34, "rmdir": 35, "unlink": 35},
}[platform.machine()]
"""The numbers of system calls, as the kernel's tables have them."""

# linux/ptrace.h; the options: mark stops at system calls, and die with the tracer.
TRACEME, OPTIONS, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 1 | 1 << 20, 24, 0x4200, 0x420E
ENTRY, EXIT = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


class SyscallInfo(ctypes.Structure):
    """struct ptrace_syscall_info, as far as it is read."""

    _fields_ = (("op", ctypes.c_uint8), ("where", ctypes.c_uint64 * 2), ("nr", ctypes.c_uint64))


def _ptrace(request: int, pid: int, address: int = 0, data: object = None) -> None:
    words = (ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address))
    if _libc.ptrace(*words, ctypes.byref(data) if isinstance(data, SyscallInfo) else ctypes.c_void_p(data)) < 0:  # type: ignore[arg-type]
        raise OSError(ctypes.get_errno(), "ptrace")


def is_killed_after(count: int, names: Sequence[str], argv: Sequence[str]) -> bool:
    """Run `argv` and kill it after `count` of the calls `names`; False if it ended before."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        _ptrace(TRACEME, 0)
        os.execv(argv[0], argv)
    os.waitpid(pid, 0)
    _ptrace(SETOPTIONS, pid, data=OPTIONS)
    wanted, info = {CALLS[name] for name in names}, SyscallInfo()
    while count:
        _ptrace(SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            return False
        called = info.nr if info.op == ENTRY else None
        _ptrace(GET_SYSCALL_INFO, pid, ctypes.sizeof(info), info)
        count -= info.op == EXIT and called in wanted
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True
