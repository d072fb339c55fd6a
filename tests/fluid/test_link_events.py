# SPDX-License-Identifier: Apache-2.0
"""Links that fail, recover, lose packets and slow down in the flow-level model: cases worked out by hand."""

from typing import Any

import pytest

from roundabout.models.fluid import ResidualCapacity, capacities
from roundabout.spec import TrialSpec
from roundabout.testbeds.fluid.engine_trial import ComputedTrial, compute_trial
from roundabout.testbeds.fluid.provider import FluidProvider, UnplayableError
from tests.trials import build_trial
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

RATE = 43e9 / 8 / 1e3
"""Payload of a link, bytes/ms."""
COMPUTE_MS, ALONE_MS = 10.0, 100.0
FABRIC = {"topology": "leaf-spine-2x2", "routing": {"name": "ecmp", "seed": 1}}


def trial(events: list[dict[str, Any]], share: float = 1.0, jobs: int = 1, **fields: Any) -> TrialSpec:
    """Return jobs between two leaves, whose phases of 100 ms need a share of a link's rate."""
    file: dict[str, Any] = {
        "profiles": {"p": two_phases(COMPUTE_MS, round(share * RATE * ALONE_MS), ALONE_MS)},
        "jobs": {f"j{k + 1}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"]} for k in range(jobs)},
        "transport": {"name": "dcqcn"},
        "iterations": 2,
        "events": events,
    }
    return build_trial(**file | FABRIC | fields)


def compute(spec: TrialSpec) -> ComputedTrial:
    return compute_trial(spec, ResidualCapacity.constant(capacities(spec.topology)))


def iterations_ms(spec: TrialSpec, job: str = "j1") -> list[float]:
    found = compute(spec).iterations[job]
    ms: list[float] = (found[0, :, 2] - found[0, :, 0]).tolist()
    return ms


def event(at_ms: float, what: str, link: str = "s0", **share: float) -> dict[str, Any]:
    return {"at_ms": at_ms, "link": link, "what": what, **share}


def test_a_failure_delays_a_transfer_by_as_long_as_it_lasts() -> None:
    events = [event(50, "fails"), event(80, "recovers")]
    assert iterations_ms(trial(events)) == pytest.approx([110 + 30, 110])


def test_a_transfer_that_has_capacity_to_spare_catches_up() -> None:
    """At half of the link's rate, what waits after 30 ms leaves within 30 ms, at twice the rate at which it comes."""
    events = [event(50, "fails"), event(80, "recovers")]
    assert iterations_ms(trial(events, share=0.5)) == pytest.approx([110, 110])


def test_half_the_rate_takes_twice_as_long_for_the_rest() -> None:
    """40 of 100 ms are sent at 50 ms; of the next iteration, all is sent at half the rate."""
    assert iterations_ms(trial([event(50, "slows", share=0.5)])) == pytest.approx([50 + 2 * 60, 10 + 2 * 100])


def test_a_link_that_loses_a_fifth_carries_four_fifths() -> None:
    events = [event(0, "loses", share=0.2), event(135, "recovers")]
    assert iterations_ms(trial(events)) == pytest.approx([10 + 125, 110])


def test_flows_stand_still_until_routes_follow() -> None:
    spec = trial([])
    used = spec.routes_of("j1")[0][1].link.name
    events = [event(50, "fails", used), event(500, "recovers", used)]
    assert iterations_ms(trial(events, reroute_after_ms=20)) == pytest.approx([110 + 20, 110])
    assert iterations_ms(trial(events)) == pytest.approx([110 + 450, 110])
    assert iterations_ms(trial([event(0, "fails", used)], reroute_after_ms=0)) == pytest.approx([110, 110])


def test_rerouted_jobs_share_the_link_that_is_left() -> None:
    """Both jobs send at 50 ms and have 60 ms left; from then on they share a spine."""
    used = [trial([], jobs=2).routes_of(f"j{k}")[0][1].link.name for k in (1, 2)]
    assert used[0] != used[1]
    spec = trial([event(50, "fails", used[0])], jobs=2, reroute_after_ms=0)
    for job in spec.jobs:
        assert iterations_ms(spec, job)[0] == pytest.approx(50 + 2 * 60)


def test_bytes_are_counted_on_the_links_that_carried_them() -> None:
    spec = trial([])
    used = spec.routes_of("j1")[0][1].link.name
    carried = compute(trial([event(60, "fails", used)], reroute_after_ms=0)).carried
    other = "spine1" if used.endswith("0") else "spine0"
    first, second = (carried["leaf0", each][-1] for each in (used.rpartition("-")[2], other))
    assert first == pytest.approx(50 * RATE)
    assert second == pytest.approx(150 * RATE)


def test_events_beside_cross_traffic_are_refused() -> None:
    traffic = {"x": {"kind": "iperf", "from": "s1", "to": ["s3"], "load_gbps": 1}}
    with pytest.raises(UnplayableError, match="beside cross_traffic"):
        FluidProvider().check_trial(trial([event(50, "slows", share=0.5)], cross_traffic=traffic))
