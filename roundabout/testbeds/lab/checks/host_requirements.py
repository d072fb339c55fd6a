# SPDX-License-Identifier: Apache-2.0
"""Requirements of this machine, checked before a lab is created."""

import os
import sys

from roundabout.testbeds.lab.checks.kernel_features import require_btf
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.lifecycle import ssh
from roundabout.testbeds.lab.network import paths


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
    require_btf()
    ssh.find_sshd()
    for name in ("labinit", "labenter", "switchport"):
        paths.program_path(name)
    paths.bpf_object_path("ecn")
