# SPDX-License-Identifier: Apache-2.0
"""A job that PyTorch recorded while its bytes were counted: both say the same. As a proof, of a run made anew."""

import json
import os
from pathlib import Path

import pytest

from analysis.reading.profiling import alone
from analysis.records.profile import Recorded, recorded
from analysis.statistics.phases import find
from roundabout.api import run_experiment
from roundabout.spec import load_experiment
from roundabout.store import Units

TRACES = Path(__file__).parent / "ddp-lab"
PYTHON = os.environ.get("TRAINING_PYTHON", "/usr/bin/python3")
EXPERIMENT = {
    "schema": 1,
    "name": "recorded",
    "about": "A job that trains alone, and records itself",
    "topology": "dumbbell-2x2",
    "profile": "ddp-lab",
    "jobs": {"j1": {"workers": ["s0", "s2"], "trainer": {"name": "ddp", "python": PYTHON, "record": "kineto"}}},
    "iterations": 41,
    "transport": {"name": "dcqcn"},
}


def agrees(found: Recorded, period_ms: float, sent_bytes: float) -> None:
    assert found.course.found.period_ms.value == pytest.approx(period_ms, rel=0.01)
    assert found.profile.alone_ms == pytest.approx(period_ms, rel=0.01)
    assert found.profile.comm_bytes == pytest.approx(sent_bytes, rel=0.01)
    assert found.steps_ms == pytest.approx(period_ms, rel=0.01)
    assert [phase.sends for phase in found.course.found.phases] == [False, True]


def test_what_was_recorded_says_what_was_counted():
    counted = json.loads((TRACES / "counted.json").read_text())
    found = recorded(sorted(TRACES.glob("*.json.gz")), "seen", Units.of(counted["testbed"]))
    agrees(found, counted["period_ms"]["value"], counted["bytes"])
    assert found.course.found.iterations >= 35
    assert [each.rank for each in found.job.records] == [0, 1]


@pytest.mark.proof
def test_a_job_recorded_anew_says_what_is_counted(tmp_path):
    file = tmp_path / "recorded.yaml"
    file.write_text(json.dumps(EXPERIMENT))
    run = run_experiment(load_experiment(file), runs=tmp_path / "runs", quiet=True)
    counted = find(alone(run, "j1").workers())
    traces = sorted(run.path.glob("trials/*/records/*.kineto.json.gz"))
    found = recorded(traces, "seen", Units.of(run.manifest["testbed"]))
    agrees(found, counted.period_ms.value, sum(phase.bytes.value for phase in counted.phases if phase.sends))
