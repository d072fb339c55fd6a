# SPDX-License-Identifier: Apache-2.0
"""Requirements of this machine, checked before a lab is created."""

import os
import sys
from pathlib import Path

from roundabout.core.btf import KERNEL_BTF
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.lifecycle import ssh
from roundabout.testbeds.lab.network import paths

TIME_NAMESPACE = Path("/proc/self/ns/time")


def require_root() -> None:
    """Raise LabError if this process does not run as root."""
    if os.geteuid() != 0:
        raise LabError(
            "a lab needs root: it makes network namespaces and loads eBPF programs",
            f"sudo {' '.join([sys.executable, *sys.argv])}",
        )


def require_all() -> None:
    """Raise LabError for the first missing requirement of a lab, so that no incomplete lab is built."""
    require_root()
    if not KERNEL_BTF.exists():
        raise LabError(
            f"this kernel ({os.uname().release}) has no BTF: {KERNEL_BTF} is missing",
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        )
    ssh.find_sshd()
    for name in ("labinit", "labenter", "switchport"):
        paths.program_path(name)
    paths.bpf_object_path("ecn")


def require_own_clocks() -> None:
    """Raise LabError if the kernel does not support separate clocks for hosts (time namespaces)."""
    if not TIME_NAMESPACE.exists():
        raise LabError(
            f"this kernel ({os.uname().release}) has no time namespaces: {TIME_NAMESPACE} is missing",
            "boot Linux 5.6 or later with CONFIG_TIME_NS=y, or leave the hosts' clocks unshifted",
        )
