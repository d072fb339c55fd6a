# SPDX-License-Identifier: Apache-2.0
"""A disk that is full at any write: one message, committed trials stay, and the run can be finished."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.power import EXPERIMENT

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent


def run_on_full_disks(folder: Path, every: int) -> list[str]:
    """What was wrong, and the counts; every so many of the calls that take room fails, a run each."""
    library, file = folder / "full_disk.so", folder / "tiny.yaml"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "full_disk.c", "-ldl"], check=True)
    file.write_text(EXPERIMENT)
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.full_disk", library, folder, file, str(every)],
        env=os.environ | {"LD_PRELOAD": str(library)}, capture_output=True, text=True, cwd=HERE.parents[1],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tried(lines: list[str]) -> tuple[int, int]:
    """Of the calls that there are, how many failed, once and from then on."""
    (counts,) = lines  # nothing else was wrong
    calls, runs = map(int, re.findall(r"\d+", counts))
    return calls, runs


@pytest.mark.proof
def test_a_run_on_a_full_disk_can_be_finished(tmp_path: Path) -> None:
    calls, runs = tried(run_on_full_disks(tmp_path, every=40))
    assert calls > 80
    assert runs >= 4


@pytest.mark.proof
def test_a_run_can_be_finished_after_a_full_disk_at_any_write(tmp_path: Path) -> None:
    calls, runs = tried(run_on_full_disks(tmp_path, every=1))
    assert runs == 2 * (calls - 1)
