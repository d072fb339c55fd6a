# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile` in a real lab: what the counters show is what was played."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.spec import load_profile
from roundabout.store import Run

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

ROOT = Path(__file__).parents[2]
NOISE = ("busy", "woke up", "took")  # a test machine may be loaded: that spoils a trial, not what is tested here


@pytest.mark.proof
@pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")
def test_the_profile_command_finds_the_played_profile(tmp_path):
    words = [sys.executable, "-m", "roundabout.cli.main", "profile", "measure", "resnet50-1600", "--json"]
    done = subprocess.run(
        words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    run = Run.open("last", tmp_path / "runs")
    (trial,) = run.trials()
    if not trial["valid"]:
        assert any(word in trial["reason"] for word in NOISE), trial["reason"]
        assert done.returncode == 1
        assert trial["reason"] in done.stderr
        return
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    # Against the workers' own clocks, since a busy machine plays a profile late.
    assert result["found"]["period_ms"]["value"] == pytest.approx(result["timed_ms"], rel=0.005)
    assert result["difference"]["period_share"] < 0.01
    assert result["difference"]["edge_share"] < 0.02
    assert result["difference"]["demand_share"] < 0.03
    played, found = load_profile("resnet50-1600"), load_profile("resnet50-1600-measured", run.path)
    # Headers come off to the byte.
    assert found.comm_bytes == pytest.approx(played.comm_bytes, rel=0.005)
