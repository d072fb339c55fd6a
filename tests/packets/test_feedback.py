# SPDX-License-Identifier: Apache-2.0
"""The time from a mark to the cut of a rate, as a topology's delays say it."""

import numpy as np
import pytest

from roundabout.models.packets import PS_PER_MS, Fabric, open_trial
from roundabout.models.packets.network import number_ports, plan_nics, plan_ports
from roundabout.models.packets.structures import PS_PER_US
from roundabout.spec import TrialSpec
from tests.trials import build_trial

pytestmark = pytest.mark.unit

SAMPLE_US = 0.1
SEND = {"name": "send", "bytes": 10_000_000, "alone_ms": 2, "pattern": "one-to-all", "guess": "any"}


def crossing(delays: dict[str, float]) -> TrialSpec:
    """Return two jobs that cross the trunk of a dumbbell, where all is marked that leaves two packets behind."""
    return build_trial(
        delays=delays,
        profiles={"p": {"model": "any", "phases": [SEND]}},
        jobs={f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"]} for k in range(2)},
        transport={"name": "dcqcn", "ecn": {"Kmin_bytes": 2000, "Kmax_bytes": 2000, "Pmax": 1}},
        iterations=1,
    )


@pytest.mark.parametrize(
    "delays",
    [{}, {"cnp_to_cut_us": 20.0, "cnp_jitter_us": 0.0}, {"link_us": 3.0, "switch_us": 1.0, "mark_to_cnp_us": 0.0}],
)
def test_a_mark_cuts_a_rate_after_the_feedback_delay(delays: dict[str, float]) -> None:
    spec = crossing(delays)
    engine, ports, _ = open_trial(spec, 1, Fabric(), SAMPLE_US / 1e3)
    engine.run(round(0.2 * PS_PER_MS), while_jobs=False)
    counted = engine.samples()
    marks = counted.ports["marks"][:, ports.numbers["tor0", "tor1"]]
    cuts = counted.hosts["cnps_handled"].sum(axis=1)
    took_us = (np.flatnonzero(cuts)[0] - np.flatnonzero(marks)[0]) * SAMPLE_US
    expected = spec.feedback_delay
    assert expected is not None
    # A packet of RoCE is shorter than the MTU: it saves 0.08 us a link.
    assert expected.least_us - 0.2 - SAMPLE_US <= took_us <= expected.most_us + SAMPLE_US


def test_the_defaults_are_what_the_fabric_had() -> None:
    """Hold the engine's figures, so that results from before topologies had delays stay the same bytes."""
    spec = crossing({})
    assert {port.delay_ps for port in plan_ports(spec, Fabric(), number_ports(spec.topology))} == {600_000}
    assert {port.buffer_bytes for port in plan_ports(spec, Fabric(), number_ports(spec.topology))} == {2_011_998}
    nics = plan_nics(spec, Fabric(), 1)
    assert (nics.cnp_delay_ps, nics.cnp_jitter_ps) == (5 * PS_PER_US, 2 * PS_PER_US)
