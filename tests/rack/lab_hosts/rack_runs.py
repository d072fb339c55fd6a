# SPDX-License-Identifier: Apache-2.0
"""Runs on lab hosts that pose as a rack (rack_process.py), as processes of their own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundabout.core.paths import ROOT


@contextmanager
def driven(action: str, inventory: Path, folder: Path, *more: object) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own."""
    words = [sys.executable, "-m", "tests.rack.lab_hosts.rack_process", action, inventory, folder, *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(list(map(str, words)), cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
