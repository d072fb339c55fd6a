# SPDX-License-Identifier: Apache-2.0
"""Events of links in experiments: what is refused, what routes follow, and that trials without them stay the same."""

from typing import Any

import pytest

from roundabout.spec.errors import SpecError
from roundabout.spec.link_events import INTACT, LinkState
from roundabout.spec.preconditions import find_warnings
from roundabout.spec.remaining_paths import Rerouting
from roundabout.spec.routing import Flow
from tests.event_trials import event_trial
from tests.several_paths.fabrics import leaf_spine

pytestmark = pytest.mark.unit

FAILS = {"at_ms": 100, "link": "leaf0-spine0", "what": "fails"}
RECOVERS = {"at_ms": 300, "link": "leaf0-spine0", "what": "recovers"}


def test_trials_without_events_are_stored_as_before() -> None:
    stored = event_trial(events=[]).model_dump(mode="json")
    assert not {"events", "reroute_after_ms"} & stored.keys()
    assert event_trial(FAILS, RECOVERS, reroute_after_ms=5).model_dump(mode="json")["events"] == [FAILS, RECOVERS]


def test_states_of_links_and_routes_follow_events_in_the_order_of_instants() -> None:
    slows = {"at_ms": 150, "link": "leaf1-spine0", "what": "slows", "share": 0.5}
    loses = {"at_ms": 160, "link": "leaf1-spine0", "what": "loses", "share": 0.1}
    spec = event_trial(RECOVERS, loses, slows, FAILS, reroute_after_ms=50)
    assert spec.link_changes == (
        (100, "leaf0-spine0", LinkState(is_up=False)),
        (150, "leaf1-spine0", LinkState(rate=0.5)),
        (160, "leaf1-spine0", LinkState(loss=0.1, rate=0.5)),
        (300, "leaf0-spine0", INTACT),
    )
    assert spec.route_changes == ((150, frozenset({"leaf0-spine0"})), (350, frozenset()))
    assert event_trial(FAILS, RECOVERS).route_changes == ()


@pytest.mark.parametrize(
    ("events", "fields", "field", "found"),
    [
        ([{**FAILS, "link": "leaf0-spine7"}], {}, "events[0].link", "'leaf0-spine7'"),
        ([RECOVERS], {}, "events[0].what", "but it is intact"),
        ([FAILS, {**FAILS, "at_ms": 200}], {}, "events[1].what", "but it has failed"),
        ([FAILS, {**RECOVERS, "at_ms": 100}], {}, "events[1].at_ms", "a second event"),
        ([{**FAILS, "share": 0.5}], {}, "events[0]", "a mapping"),
        ([{**FAILS, "what": "slows"}], {}, "events[0]", "a mapping"),
        ([{**FAILS, "what": "breaks"}], {}, "events[0].what", "'breaks'"),
        ([FAILS], {}, "events[0].what", "routes stay without `reroute_after_ms`"),
        ([{**FAILS, "link": "s0"}], {"reroute_after_ms": 5}, "events[0].what", "no other path is left"),
        ([], {"reroute_after_ms": 5}, "reroute_after_ms", "5"),
        ([FAILS, RECOVERS], {"skip_within": 0.02}, "skip_within", "beside events"),
    ],
)
def test_events_that_cannot_be_are_refused(
    events: list[dict[str, Any]], fields: dict[str, Any], field: str, found: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        event_trial(*events, **fields)
    assert refusal.value.field == field
    assert found in refusal.value.message


def test_a_failure_for_good_is_allowed_where_another_path_is_left() -> None:
    assert event_trial(FAILS, reroute_after_ms=5).events[0].link == "leaf0-spine0"


def test_a_warning_names_flows_that_wait_until_a_link_recovers() -> None:
    waits = [FAILS | {"link": "s0"}, RECOVERS | {"link": "s0"}]
    assert (
        "waits until it recovers, because no path is left"
        in find_warnings([event_trial(*waits, reroute_after_ms=5)])[0]
    )
    assert "routes stay" in find_warnings([event_trial(*waits)])[0]
    assert find_warnings([event_trial(FAILS, RECOVERS, reroute_after_ms=5)]) == []


def test_flows_take_the_routing_s_choice_among_the_links_that_are_left() -> None:
    topology = leaf_spine(leaves=3, spines=3)
    flows = [Flow("s0", "s3", port) for port in range(50_000, 50_050)]
    before = {flow: topology.path(*flow) for flow in flows}
    after = {flow: Rerouting(topology, frozenset({"l0-p1"})).path(flow) for flow in flows}
    assert {path[1].link.name for path in before.values()} == {"l0-p0", "l0-p1", "l0-p2"}
    assert {path[1].link.name for path in after.values()} == {"l0-p0", "l0-p2"}
    assert all(Rerouting(topology, frozenset()).path(flow) == path for flow, path in before.items())
    # Beyond the failed link, spine1 is no longer on a shortest path to leaf0.
    back = Rerouting(topology, frozenset({"l0-p1"}))
    assert {back.path(flow.turned)[1].link.name for flow in flows} == {"l1-p0", "l1-p2"}


def test_longer_paths_are_taken_where_no_shortest_one_is_left() -> None:
    topology = leaf_spine(leaves=3, spines=2)
    left = Rerouting(topology, frozenset({"l0-p0", "l1-p1"}))
    path = [hop.link.name for hop in left.path(Flow("s0", "s2"))]
    assert path == ["s0", "l0-p1", "l2-p1", "l2-p0", "l1-p0", "s2"]


def test_a_flow_without_a_path_keeps_its_own() -> None:
    topology = leaf_spine()
    apart = Rerouting(topology, frozenset({"l0-p0", "l0-p1"}))
    assert apart.path(Flow("s0", "s2")) == topology.path("s0", "s2")
    assert apart.path(Flow("s0", "s1")) == topology.path("s0", "s1")
