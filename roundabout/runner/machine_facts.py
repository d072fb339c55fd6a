# SPDX-License-Identifier: Apache-2.0
"""Facts about the code and this machine, which every manifest records to make results traceable."""

import json
import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from roundabout.core.paths import IS_CHECKOUT, REVISION, ROOT

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


def code_facts() -> dict[str, Any]:
    """Return the version of the code, its git revision, and its form: a checkout or a wheel."""
    revision = revision_of(ROOT) if IS_CHECKOUT else json.loads((ROOT / REVISION).read_text())
    return {"version": version("roundabout"), "source": "checkout" if IS_CHECKOUT else "wheel", **revision}


def revision_of(root: Path) -> dict[str, Any]:
    """Return the git revision of a checkout and a flag for uncommitted changes. Values are None without git."""
    # Under sudo the repository belongs to somebody else, which git would refuse; its index stays theirs.
    git = ["git", "--no-optional-locks", "-c", f"safe.directory={root}", "-C", str(root)]
    try:
        revision = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {"revision": None, "dirty": None}
    return {"revision": revision, "dirty": bool(changes.strip())}
