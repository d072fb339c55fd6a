# SPDX-License-Identifier: Apache-2.0
"""Chosen paths of jobs' flows: by their source ports, the least loaded one first."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.paths import (
    PathSearch,
    placed_flows,
    with_crux_paths,
    with_foresight,
)
from roundabout.models.cluster.state import Job, Request, State
from roundabout.models.cluster.timeline import Allocation
from roundabout.spec.cassini import Timetable
from roundabout.spec.fabrics import leaf_spine
from roundabout.spec.routing import source_port
from roundabout.spec.topology import Topology
from tests.schedulers.clusters import KNOWN, employed, with_links_of

pytestmark = pytest.mark.unit

FABRIC = leaf_spine(servers=32, oversubscription=2).topology("fabric")
"""Four leaves of eight servers, and four spines."""
NARROW = with_links_of(FABRIC, 43.0)


def decide(placements: dict[str, tuple[str, ...]], models: dict[str, str], topology: Topology = FABRIC):
    requests = {job: Request(job, model, 8, 2, 500, 0.0) for job, model in models.items()}
    policy = with_crux_paths(lambda state, seed: PlacementDecision(placements, {}, ()), KNOWN)
    decided = policy(State(0.0, topology, tuple(map(Job, requests.values()))), 1)
    jobs = {
        name: employed(requests, Allocation("x.1", name, 0, 9, placed, 1, 0, source_ports=decided.source_ports[name]))
        for name, placed in placements.items()
        if name in decided.source_ports
    }
    return decided, jobs


def uplinks(jobs) -> Counter[tuple[str, str]]:
    """The flows on each link between switches, by direction."""
    routes = (
        route
        for name, job in jobs.items()
        for phase in job.profile.phases
        for transfer in job.transfers(phase)
        for route in job.routes(name, transfer, FABRIC)
    )
    return Counter((hop.sender, hop.receiver) for route in routes for hop in route[1:-1])


def test_as_many_flows_as_spines_meet_on_no_link() -> None:
    placements = {f"j{place}": (f"s{place}", f"s{8 + place}") for place in range(4)}
    _, jobs = decide(placements, dict.fromkeys(placements, "vgg"))
    found = uplinks(jobs)
    assert len(found) == 16  # of each of two leaves, four links in both directions
    assert set(found.values()) == {1}


def test_the_most_intense_job_keeps_the_paths_that_hashes_give() -> None:
    placements = {"v": ("s0", "s8"), "r": ("s1", "s9")}
    decided, _ = decide(placements, {"v": "vgg", "r": "resnet"})
    ports = {each.sender: each.port for each in decided.source_ports["r"]}
    assert ports == {0: source_port("r", 0, 1, 0), 1: source_port("r", 1, 0, 0)}


def test_jobs_below_one_leaf_have_a_port_for_each_flow_and_jobs_on_one_host_none() -> None:
    decided, _ = decide({"a": ("s0", "s1"), "b": ("s2",)}, {"a": "vgg", "b": "vgg"})
    assert {job: len(ports) for job, ports in decided.source_ports.items()} == {"a": 2}


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(32)), st.lists(st.integers(2, 8), min_size=1, max_size=4), st.randoms())
def test_each_flow_between_hosts_has_one_port_and_takes_a_shortest_path(order, sizes, random) -> None:
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    placements = {
        f"j{place}": tuple(f"s{order[at]}" for at in range(begin, end))
        for place, (begin, end) in enumerate(pairwise(ends))
        if end <= 32
    }
    _, jobs = decide(placements, {name: random.choice(["vgg", "bert", "resnet"]) for name in placements})
    for name, job in jobs.items():
        for port in job.source_ports:
            flow = job.flow("any name", port.sender, port.receiver, port.number, FABRIC)
            assert flow.source_port == port.port
            assert len(FABRIC.path(*flow)) == (2 if leaf(flow.sender) == leaf(flow.receiver) else 4)
        assert len({(port.sender, port.receiver) for port in job.source_ports}) == len(placements[name])


@pytest.mark.parametrize("sends", ["together", "in turn"])
def test_flows_that_contend_in_time_take_other_paths(sends: str) -> None:
    """Two jobs whose flows share links to and from a spine; their timetables are half a period apart, or equal."""
    request = Request("a", "resnet", 8, 2, 500, 0.0)
    profile = KNOWN.profile(request, 2)
    placements = {"a": ("s0", "s8"), "b": ("s1", "s9")}
    flows = {job: placed_flows(job, profile, placed, NARROW) for job, placed in placements.items()}
    ports = {
        job: tuple(flow.by(next(path for path in flow.port_of if "spine2" in path[1])) for flow in own)
        for job, own in flows.items()
    }
    period_ms = 1.02 * profile.alone_ms
    table = Timetable(shift_ms=0, period_ms=period_ms, threshold_ms=1)
    later = table.model_copy(update={"shift_ms": period_ms / 2}) if sends == "in turn" else table
    search = PathSearch(flows, ports, {"a": table, "b": later}, NARROW)
    assert (search.excess > 0) == (sends == "together")
    assert search.relieve() == (sends == "together")
    assert search.excess == pytest.approx(0, abs=1e-9)
    assert (search.source_ports == ports) == (sends == "in turn")


def test_foresight_keeps_jobs_apart_where_there_is_one_path() -> None:
    """A leaf-spine with one spine: only time-shifts can help."""
    one = with_links_of(leaf_spine(servers=16, oversubscription=8).topology("fabric"), 43.0)
    requests = {job: Request(job, "resnet", 8, 2, 500, 0.0) for job in "ab"}
    placements = {"a": ("s0", "s8"), "b": ("s1", "s9")}
    policy = with_foresight(lambda state, seed: PlacementDecision(placements, {}, ()), KNOWN)
    decided = policy(State(0.0, one, tuple(map(Job, requests.values()))), 1)
    assert decided.timetables.keys() == set("ab")
    assert decided.source_ports.keys() == set("ab")


def leaf(host: str) -> int:
    return int(host[1:]) // 8
