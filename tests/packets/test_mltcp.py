# SPDX-License-Identifier: Apache-2.0
"""MLTCP over DCQCN, packet by packet: two jobs that fit move apart over it, and stay together without it."""

from typing import Any

import numpy as np
import pytest

from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.models.packets.first_iteration import first_bandwidths
from roundabout.models.packets.transports import mltcp_plan, transport_values
from roundabout.spec import TrialSpec
from roundabout.spec.transports import Transport
from tests.trials import build_trial
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

ALONE_MS = 20 + 17.5
PROFILE = two_phases(20, 90_000_000, 17.5)


def saturating(iterations: int, **transport: Any) -> TrialSpec:
    """Two jobs that want all of the link while they send, the second 2 ms later."""
    return build_trial(
        profiles={"p": PROFILE},
        jobs={
            "j1": {"profile": "p", "workers": ["s0", "s2"], "flows": 2},
            "j2": {"profile": "p", "workers": ["s1", "s3"], "flows": 2, "start_offset_ms": 2},
        },
        # Where R_HAI is added as it is, as the set has it, jobs come apart without MLTCP, too.
        transport={"set": "hpcc-paper", "F": 1, "hyper_by_stage": 1, "alpha_by_timer": 0, **transport},
        iterations=iterations,
    )


def last_ms(spec: TrialSpec) -> float:
    """Return the mean of the last three iterations of both jobs."""
    found = play_trial(spec, 1, Fabric()).iterations.values()
    return float(np.mean([(each["end_ps"] - each["start_ps"])[0, -3:] / PS_PER_MS for each in found]))


# Iterations are as many as jobs take to move apart, and a few more.
@pytest.mark.parametrize(
    ("fields", "iterations"), [({}, 36), ({"count_by": "socket"}, 17), ({"acts_on": "decrease"}, 13)]
)
def test_jobs_move_apart_over_mltcp(fields: dict[str, Any], iterations: int) -> None:
    assert last_ms(saturating(iterations, name="mltcp_dcqcn", **fields)) < 1.1 * ALONE_MS


@pytest.mark.parametrize("fields", [{"name": "dcqcn"}, {"name": "mltcp_dcqcn", "shape": "decreasing"}])
def test_jobs_stay_together_without_it(fields: dict[str, Any]) -> None:
    assert last_ms(saturating(20, **fields)) > 1.35 * ALONE_MS


def share_at_constant_aggressiveness(acts_on: str) -> float:
    """Return the rate of a job whose F is always 4 over that of one whose F is always 1, with hotnets22."""
    common = {"name": "mltcp_dcqcn", "set": "hotnets22", "slope": 0, "iteration_bytes": 10**12, "gap_us": 20_000}
    transports = ({**common, "acts_on": acts_on, "intercept": F} for F in (4, 1))
    first, second = ({"profile": "p", "jitter": 0, "transport": each} for each in transports)
    spec = build_trial(
        profiles={"p": two_phases(20, 400_000_000, 75)},  # 150 ms together: shares settle within 80
        jobs={"j1": {**first, "workers": ["s0", "s2"]}, "j2": {**second, "workers": ["s1", "s3"]}},
        iterations=1,
    )
    rates = first_bandwidths(spec, 1, Fabric())
    return rates["j1"] / rates["j2"]


@pytest.mark.parametrize("acts_on", ["increase", "decrease"])
def test_shares_over_dcqcn_go_by_the_root_of_aggressiveness(acts_on: str) -> None:
    assert share_at_constant_aggressiveness(acts_on) == pytest.approx(4**0.5, rel=0.2)


def test_scaling_additive_steps_alone_moves_no_share_where_hyper_increases_act() -> None:
    assert share_at_constant_aggressiveness("additive") == pytest.approx(1, abs=0.05)


def test_parameters_are_those_of_the_header() -> None:
    transport = Transport.model_validate({"name": "mltcp_dcqcn", "shape": "reciprocal", "slope": 4.0, "gap_us": 700})
    found = mltcp_plan(transport_values(transport, 43), transport)
    assert (found.shape, found.acts_on, found.slope_q24, found.gap_us) == (2, 0, 4 << 24, 700)
    assert found.intercept_q24 == found.learn_q24 == 1 << 22
