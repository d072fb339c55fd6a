# SPDX-License-Identifier: Apache-2.0
"""A job that PyTorch trains and records in a real lab: its traces say what its hosts' counters say.

TRAINING_PYTHON names an interpreter whose PyTorch has Kineto; Debian's has none.
"""

import json
import os

import pytest

from analysis.reading.measured_profile import find_lone_job
from analysis.records.profile import make_profile
from analysis.statistics.phases import find_phases
from roundabout.api import run_experiment
from roundabout.spec import load_experiment
from roundabout.store import Units

pytestmark = [pytest.mark.lab, pytest.mark.proof]
PYTHON = os.environ.get("TRAINING_PYTHON", "/usr/bin/python3")
EXPERIMENT = {
    "name": "recorded",
    "about": "A job that trains alone, and records itself",
    "topology": "dumbbell-2x2",
    "profile": "ddp-lab",
    "jobs": {"j1": {"workers": ["s0", "s2"], "trainer": {"name": "ddp", "python": PYTHON, "record": "kineto"}}},
    "iterations": 41,
    "transport": {"name": "dcqcn"},
}


@pytest.mark.skipif("TRAINING_PYTHON" not in os.environ, reason="TRAINING_PYTHON names no PyTorch with Kineto")
def test_traces_recorded_in_a_run_agree_with_byte_counters(tmp_path):
    file = tmp_path / "recorded.yaml"
    file.write_text(json.dumps(EXPERIMENT))
    run = run_experiment(load_experiment(file), runs=tmp_path / "runs", quiet=True)
    counted = find_phases(find_lone_job(run, "j1").workers())
    traces = sorted(run.path.glob("trials/*/records/*.kineto.json.gz"))
    found = make_profile(traces, "seen", Units.from_manifest(run.manifest["testbed"]))
    period_ms, sent = counted.period_ms.value, sum(phase.bytes.value for phase in counted.phases if phase.sends)
    print(f"period {found.timeline.found.period_ms.value:.2f} of {period_ms:.2f} ms")
    print(f"bytes {found.profile.comm_bytes / 1e6:.2f} of {sent / 1e6:.2f} MB")
    assert found.timeline.found.period_ms.value == pytest.approx(period_ms, rel=0.01)
    assert found.profile.comm_bytes == pytest.approx(sent, rel=0.01)
