# SPDX-License-Identifier: Apache-2.0
"""The project's bpffs, which is mounted while it has pins. Callers must hold the lock of the state folder.

The `transport` tool uses the same mount with the same rule, so the last user of the two unmounts it.
"""

import ctypes
import os
from contextlib import suppress

from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network import paths

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8

_libc = ctypes.CDLL(None, use_errno=True)


def mount() -> None:
    """Mount the bpffs if it is not mounted. Raises LabError if the kernel refuses."""
    if paths.BPF.is_mount():
        return
    paths.BPF.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _libc.mount(b"bpf", os.fsencode(paths.BPF), b"bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, b"mode=0700"):
        raise LabError(f"mounting a bpffs at {paths.BPF} failed: {os.strerror(ctypes.get_errno())}")


def unmount_if_unused() -> None:
    """Unmount the bpffs if all of its folders are empty. Files beside the folders are the kernel's own.

    Raises LabError if the kernel refuses.
    """
    if paths.BPF.is_mount():
        for folder in [entry for entry in paths.BPF.iterdir() if entry.is_dir()]:
            with suppress(OSError):
                folder.rmdir()
        if any(entry.is_dir() for entry in paths.BPF.iterdir()):
            return
        if _libc.umount2(os.fsencode(paths.BPF), 0):
            raise LabError(
                f"unmounting {paths.BPF} failed: {os.strerror(ctypes.get_errno())}",
                f"`fuser -vm {paths.BPF}` lists the processes that use it",
            )
    with suppress(FileNotFoundError):
        paths.BPF.rmdir()
