# SPDX-License-Identifier: Apache-2.0
"""Routes in topologies with several paths, and today's paths in trees."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.spec.routing import PORTS, Routing, source_port
from roundabout.spec.topology import Topology
from tests.several_paths.fabrics import leaf_spine

pytestmark = pytest.mark.unit

ROUTINGS = st.builds(
    Routing,
    name=st.sampled_from(["static", "ecmp"]),
    seed=st.integers(0, 2**32 - 1),
    hash=st.sampled_from(["same", "per-switch"]),
)


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    """Draw a connected topology: switches in a random tree, further cables between any two, and hosts at any."""
    switches = [f"x{number}" for number in range(draw(st.integers(2, 6)))]
    hosts = [f"s{number}" for number in range(draw(st.integers(2, 6)))]
    ends = [(switches[draw(st.integers(0, place - 1))], switch) for place, switch in enumerate(switches) if place]
    pairs = st.tuples(st.sampled_from(switches), st.sampled_from(switches)).filter(lambda both: both[0] != both[1])
    ends += draw(st.lists(pairs, max_size=8))
    ends += [(host, draw(st.sampled_from(switches))) for host in hosts]
    return Topology.model_validate(
        {
            "name": "drawn",
            "about": "drawn",
            "line_rate_gbps": 50,
            "payload_rate_gbps": 43,
            "queue": "lossless",
            "hosts": hosts,
            "switches": switches,
            "links": [{"name": f"c{number}", "ends": list(both)} for number, both in enumerate(ends)],
            "routing": draw(ROUTINGS),
        }
    )


@settings(max_examples=60, deadline=None)
@given(fabrics(), st.integers(0, 65_535))
def test_a_route_is_a_connected_shortest_path(fabric: Topology, port: int) -> None:
    distances = {host: _distances(fabric, host) for host in fabric.hosts}
    for sender in fabric.hosts:
        for receiver in fabric.hosts:
            route = fabric.path(sender, receiver, port)
            nodes = [sender, *(hop.receiver for hop in route)]
            assert [hop.sender for hop in route] == nodes[:-1]
            assert nodes[-1] == receiver
            assert all(set(hop.link.ends) == {hop.sender, hop.receiver} for hop in route)
            assert len(route) == distances[receiver][sender]
            assert len(set(fabric.directions(route))) == len(route)


def _distances(fabric: Topology, start: str) -> dict[str, int]:
    found, frontier = {start: 0}, [start]
    for node in frontier:
        for link in fabric.links:
            if node in link.ends:
                other = link.ends[1 - link.ends.index(node)]
                if other not in found:
                    found[other] = found[node] + 1
                    frontier.append(other)
    return found


@settings(max_examples=30, deadline=None)
@given(fabrics())
def test_static_routing_gives_one_cable_to_an_input_port_and_destination(fabric: Topology) -> None:
    fabric = fabric.with_routing(Routing(name="static"))
    chosen = defaultdict(set)
    for sender in fabric.hosts:
        for receiver in fabric.hosts:
            for port in (1, 2, 50_000):
                route = fabric.path(sender, receiver, port)
                for before, hop in pairwise(route):
                    chosen[before.link.name, before.receiver, receiver].add(hop.link.name)
    assert all(len(cables) == 1 for cables in chosen.values())


@settings(max_examples=40, deadline=None)
@given(fabrics(), ROUTINGS)
def test_a_tree_has_the_same_paths_with_and_without_routing(fabric: Topology, routing: Routing) -> None:
    tree = [link for number, link in enumerate(fabric.links) if number < len(fabric.switches) - 1]
    tree += [link for link in fabric.links if set(link.ends) & set(fabric.hosts)]
    plain, routed = (
        Topology.model_validate(fabric.model_dump() | {"links": [link.model_dump() for link in tree], "routing": each})
        for each in (None, routing)
    )
    assert plain.is_tree
    for sender in plain.hosts:
        for receiver in plain.hosts:
            assert plain.path(sender, receiver) == routed.path(sender, receiver, 7)
            assert len(plain.path(sender, receiver)) == _distances(plain, sender)[receiver]


@pytest.mark.parametrize("rule", ["same", "per-switch"])
def test_ecmp_spreads_the_flows_of_a_switch_evenly(rule: str) -> None:
    fabric = leaf_spine(leaves=2, spines=4, below=1, routing=Routing(name="ecmp", hash=rule))
    count = 4_000
    routes = [fabric.path("s0", "s1", source_port("j", 0, 1, number)) for number in range(count)]
    used = Counter(route[1].link.name for route in routes)
    expected = count / 4
    # Chi-squared with 3 degrees of freedom: above 16.3 in one of 1,000 draws. The draw is fixed by the hash.
    assert len(used) == 4
    assert sum((each - expected) ** 2 / expected for each in used.values()) < 16.3


def test_source_ports_are_dynamic_ports_that_rarely_repeat() -> None:
    ports = [source_port("j", 0, 1, number) for number in range(64)]
    assert all(65_536 - PORTS <= port < 65_536 for port in ports)
    assert len(set(ports)) > 60


def test_a_loop_without_routing_is_refused() -> None:
    with pytest.raises(ValueError, match="for several give `routing`: static, ecmp or rail"):
        Topology.model_validate(leaf_spine().model_dump() | {"routing": None})
