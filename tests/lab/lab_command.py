# SPDX-License-Identifier: Apache-2.0
"""The command `roundabout lab` as a process."""

import subprocess
import sys


def roundabout(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "roundabout.cli.main", "lab", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
