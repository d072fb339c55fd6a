# SPDX-License-Identifier: Apache-2.0
"""What a run killed earlier on this machine left would fail real-lab tests: undone once, before the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def nothing_left_by_dead_runs() -> None:
    """Live runs are left alone, as by everyone's `roundabout clean`."""
    if os.geteuid() == 0:
        subprocess.run([Path(sys.executable).with_name("roundabout"), "clean"], check=True)
