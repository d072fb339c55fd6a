# SPDX-License-Identifier: Apache-2.0
"""The packet-level model beside published results that state all of their parameters (benchmarks/packet_references.py).

Tolerances are what the figures in docs/results/packet-level.md need, and not more than twice as much.
"""

import pytest

from benchmarks import packet_references as references
from benchmarks.shared.tcp import MTU
from roundabout.spec.frames import payload_share

pytestmark = pytest.mark.unit


def test_the_equations_are_the_papers() -> None:
    # SIGCOMM'10, section 3.3: the amplitude is about half of the root of 2 N (C RTT + K).
    for flows in (2, 4):
        found = references.dctcp_equations(flows, 83.3, 40)
        assert found["most"] - found["least"] == pytest.approx((2 * flows * 123.3) ** 0.5 / 2, rel=0.1)
    # RFC 9438, Tables 1 and 2.
    assert references.window_equation("reno", 1e-3, 0.1) == pytest.approx(38, abs=0.5)
    assert references.window_equation("reno", 1e-4, 0.1) == pytest.approx(120, abs=0.5)
    assert references.window_equation("cubic", 1e-4, 0.1) == pytest.approx(187, abs=0.5)
    assert references.window_equation("cubic", 1e-4, 0.01) == references.window_equation("reno", 1e-4, 0.01)


@pytest.mark.parametrize("flows", [2, 10])
def test_dctcp_holds_the_queue_that_its_paper_derives(flows: int) -> None:
    found = references.dctcp_queue(flows, 60.0)
    assert found["used"] == pytest.approx(1, abs=0.01)
    assert found["most"] == pytest.approx(found["published"]["most"], rel=0.1)
    assert found["least"] == pytest.approx(found["published"]["least"], rel=0.15)


def test_dctcp_shares_two_bottlenecks_as_in_its_paper() -> None:
    found = references.dctcp_two_bottlenecks(references.step(20), references.step(65), 100.0, 300.0)
    # Theirs are rates with headers: what headers leave is 94.1 %.
    share = payload_share(MTU)
    for name, mbps in references.SIGCOMM10_MBPS.items():
        assert found[name] == pytest.approx(mbps * share, rel=0.1)


@pytest.mark.parametrize(("algorithm", "rtt_s"), [("reno", 0.1), ("cubic", 0.1)])
def test_mean_windows_are_those_of_the_rfc(algorithm: str, rtt_s: float) -> None:
    found = references.mean_window(algorithm, 1e-3, rtt_s, 200.0)
    assert found["window"] == pytest.approx(found["published"], rel=0.25)
