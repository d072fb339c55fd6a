# SPDX-License-Identifier: Apache-2.0
"""Wherever a run is interrupted, and whatever is done next: nothing is left, lost, or other than undisturbed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.interruptions.interruption_points import ORDERS, WAYS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
POINTS = 90  # at least so many are found


def killed(folder, count, *ways):
    words = [sys.executable, "-m", "tests.runner.interruptions.interruption_points", folder, str(count), *ways]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    print({name: reported[name] for name in ("points", "cases", "faults")})
    assert reported["points"] >= POINTS
    assert reported["trials"] == 2
    assert not reported["faults"], json.dumps(reported["wrong"], indent=1)
    return reported


def test_a_run_may_be_interrupted_anywhere(tmp_path):
    killed(tmp_path, 14)  # each way twice


@pytest.mark.proof
@pytest.mark.parametrize("way", WAYS)
def test_a_run_may_be_interrupted_everywhere(tmp_path, way):
    reported = killed(tmp_path, 0, way)
    assert reported["cases"] == reported["points"] * len(ORDERS)
