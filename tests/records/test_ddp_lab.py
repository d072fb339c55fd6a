# SPDX-License-Identifier: Apache-2.0
"""A job that PyTorch recorded while its bytes were counted: both say the same (anew: trainers/test_recorded.py)."""

import json
from pathlib import Path

import pytest

from analysis.records.profile import make_profile
from roundabout.store import Units

pytestmark = pytest.mark.unit

TRACES = Path(__file__).parent / "ddp-lab"


def test_recorded_traces_agree_with_byte_counters():
    counted = json.loads((TRACES / "counted.json").read_text())
    found = make_profile(sorted(TRACES.glob("*.json.gz")), "seen", Units.from_manifest(counted["testbed"]))
    period_ms = counted["period_ms"]["value"]
    assert found.timeline.found.period_ms.value == pytest.approx(period_ms, rel=0.01)
    assert found.profile.alone_ms == pytest.approx(period_ms, rel=0.01)
    assert found.steps_ms == pytest.approx(period_ms, rel=0.01)
    assert found.profile.comm_bytes == pytest.approx(counted["bytes"], rel=0.01)
    assert [phase.sends for phase in found.timeline.found.phases] == [False, True]
    assert found.timeline.found.iterations >= 35
    assert [each.rank for each in found.job.records] == [0, 1]
