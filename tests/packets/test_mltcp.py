# SPDX-License-Identifier: Apache-2.0
"""MLTCP over DCQCN, packet by packet: two jobs that fit move apart over it, and stay together without it."""

from typing import Any

import numpy as np
import pytest

from roundabout import build_experiment
from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.models.packets.transports import mltcp_plan, transport_values
from roundabout.spec import TrialSpec
from roundabout.spec.transports import Transport
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

ALONE_MS = 20 + 17.5
PROFILE = two_phases(20, 90_000_000, 17.5)


def saturating(**transport: Any) -> TrialSpec:
    """Two jobs that want all of the link while they send, the second 2 ms later."""
    fields = {
        "schema": 1,
        "name": "saturating",
        "about": "Two jobs that fit",
        "topology": "dumbbell-2x2",
        "profiles": {"p": PROFILE},
        "jobs": {
            "j1": {"profile": "p", "workers": ["s0", "s2"], "flows": 2},
            "j2": {"profile": "p", "workers": ["s1", "s3"], "flows": 2, "start_offset_ms": 2},
        },
        # Where R_HAI is added as it is, as the set has it, jobs come apart without MLTCP, too.
        "transport": {"set": "hpcc-paper", "F": 1, "hyper_by_stage": 1, "alpha_by_timer": 0, **transport},
        "iterations": 30,
    }
    return build_experiment(fields).cells[0].spec


def last_ms(spec: TrialSpec) -> float:
    """Return the mean of the last three iterations of both jobs."""
    found = play_trial(spec, 1, Fabric()).iterations.values()
    return float(np.mean([(each["end"] - each["start"])[0, -3:] / PS_PER_MS for each in found]))


@pytest.mark.parametrize("fields", [{}, {"count_by": "socket"}, {"acts_on": "decrease"}])
def test_jobs_move_apart_over_mltcp(fields: dict[str, Any]) -> None:
    assert last_ms(saturating(name="mltcp_dcqcn", **fields)) < 1.1 * ALONE_MS


@pytest.mark.parametrize("fields", [{"name": "dcqcn"}, {"name": "mltcp_dcqcn", "shape": "decreasing"}])
def test_jobs_stay_together_without_it(fields: dict[str, Any]) -> None:
    assert last_ms(saturating(**fields)) > 1.35 * ALONE_MS


def test_parameters_are_those_of_the_header() -> None:
    transport = Transport.model_validate({"name": "mltcp_dcqcn", "shape": "reciprocal", "slope": 4.0, "gap_us": 700})
    found = mltcp_plan(transport_values(transport, 43), transport)
    assert (found.shape, found.acts_on, found.slope_q24, found.gap_us) == (2, 0, 4 << 24, 700)
    assert found.intercept_q24 == found.learn_q24 == 1 << 22
