# SPDX-License-Identifier: Apache-2.0
"""Facts about this machine, which every manifest records to make results traceable."""

import os
import platform
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

LIBRARIES = ("fabric", "numpy", "paramiko", "pyarrow", "pydantic", "pyroute2")


def controller_facts() -> dict[str, Any]:
    """Return facts of the machine that controls the run, including versions of libraries."""
    return {
        "kernel": platform.release(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


@cache
def machine_facts() -> dict[str, Any]:
    """Return facts of the machine that executes a trial, because several machines may execute a run."""
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "name": os.environ.get("SLURMD_NODENAME", platform.node()),
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
