# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/add/scheduler.md: its file, from a folder outside the tree, decides."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add/scheduler.md").read_text()
SCHEDULER = PAGE.partition("```python\n")[2].partition("```")[0]

DECIDES = """
from functools import partial
from roundabout.models.cluster import models
from roundabout.models.cluster.state import Job, JobKnowledge, Request, State
from roundabout.models.schedulers import make_scheduler, scheduler_names
from roundabout.spec.assembly.library import Library

assert "shortest" in scheduler_names()
known = JobKnowledge(models.make_profile, models.noise_examples)
jobs = [Job(Request(f"j{count}", "VGG19", 1024, 12, count, 0.0)) for count in (900, 200, 500)]
state = State(0.0, Library().topology("cluster-24"), tuple(jobs))
(placements,) = make_scheduler("shortest", known).decide(state, 1)
print(sorted(placements), len({host for each in placements.values() for host in each}))
"""


def decided(*folders: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ROUNDABOUT_PATH": os.pathsep.join(map(str, folders))}
    return subprocess.run([sys.executable, "-c", DECIDES], cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_scheduler_takes_one_file(tmp_path: Path) -> None:
    room = tmp_path / "roundabout/models/schedulers"
    room.mkdir(parents=True)
    (room / "shortest.py").write_text(SCHEDULER)
    assert decided(tmp_path).stdout == "['j200', 'j500'] 24\n", decided(tmp_path).stderr
    assert decided().returncode == 1  # unknown where no folder names it
