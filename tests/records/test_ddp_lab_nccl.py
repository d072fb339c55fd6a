# SPDX-License-Identifier: Apache-2.0
"""A job over NCCL that a GPU trained and recorded: its traces say what its workers timed, and its log how it sent."""

import json

import pytest

from analysis.records.profile import make_profile
from roundabout.runner.trial import nccl
from roundabout.spec import EXPERIMENTS

pytestmark = pytest.mark.unit

FOLDER = EXPERIMENTS / "records" / "ddp-lab-nccl"


def test_traces_of_a_gpu_agree_with_the_workers_own_figures():
    timed = json.loads((FOLDER / "timed.json").read_text())
    found = make_profile(sorted(FOLDER.glob("*.json.gz")), "seen")
    assert found.timeline.found.period_ms.value == pytest.approx(timed["period_ms"], rel=0.001)
    assert found.profile.comm_bytes == pytest.approx(timed["bytes"], rel=0.001)
    assert [phase.sends for phase in found.timeline.found.phases] == [False, True]
    # A kernel that starts first waits in itself for the other rank, so the trace shows a little more computing.
    assert found.timeline.found.phases[0].duration_ms.value == pytest.approx(timed["compute_ms"], rel=0.05)


def test_a_step_on_the_cpu_and_the_gpu_counts_once():
    timed = json.loads((FOLDER / "timed.json").read_text())
    found = make_profile(sorted(FOLDER.glob("*.json.gz")), "seen")
    assert [len(record.steps_ns) for record in found.job.records] == [40, 40]
    assert found.steps_ms == pytest.approx(timed["period_ms"], rel=0.001)


def test_nccl_logs_how_it_sends():
    used = nccl.parse_log((FOLDER / "nccl.log").read_text())
    assert (used.version, used.network, used.interfaces, used.channels) == (
        ("2.28.9",),
        ("Socket",),
        ("lo",),
        ("NET/Socket",),
    )
