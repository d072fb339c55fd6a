# SPDX-License-Identifier: Apache-2.0
"""What exact volumes take from the tails of iterations."""

import numpy as np
import pytest

from tests.crossgen import toy_tails
from tests.crossgen.toy_tails import LINK_GBPS, iterations_s, p99_s, planned

pytestmark = pytest.mark.unit


def test_a_job_gets_what_flows_leave() -> None:
    """A job computes for 1 ms and sends for 0.5, beside a flow that takes the link from 0.5 ms to 2.5."""
    tenth = LINK_GBPS * 1e9 / 8 * 1e-4  # bytes of a tenth of a ms
    times_s = iterations_s(np.array([0.0005]), np.array([20 * tenth]), 0.001, 5 * tenth, 0.006)
    assert times_s == pytest.approx([0.003, 0.0015, 0.0015])


def test_a_job_and_flows_together_fill_the_link() -> None:
    starts_s, flow_bytes = planned("--burst-width-us", "1000", load_gbps=20, duration_s=60)
    job_bytes = 1e9
    ends_s = np.cumsum(iterations_s(starts_s, flow_bytes, 0, job_bytes, 60))  # the job never computes
    by_then = np.searchsorted(starts_s, ends_s[-1])
    sent = len(ends_s) * job_bytes + flow_bytes[:by_then].sum()
    assert sent == pytest.approx(LINK_GBPS * 1e9 / 8 * ends_s[-1], rel=0.002)  # but for flows under way


def test_exact_volumes_take_the_tail_away() -> None:
    """With them the tail is that of the lab's first runs; drawn ones come near that of consistent traffic."""
    options = toy_tails.LOADS
    exact, drawn, consistent = (
        p99_s("resnet50-ring3", planned(*options[name])) for name in ("burst, exact", "burst, drawn", "consistent")
    )
    assert exact < 0.5 * drawn < 0.5 * consistent
