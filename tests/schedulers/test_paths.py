# SPDX-License-Identifier: Apache-2.0
"""Chosen paths of jobs' flows: by their source ports, the least loaded one first."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.paths import with_crux_paths
from roundabout.models.cluster.state import Job, Request, State
from roundabout.models.cluster.timeline import Allocation
from roundabout.spec.fabrics import leaf_spine
from roundabout.spec.routing import source_port
from roundabout.spec.topology import Topology
from tests.schedulers.clusters import KNOWN, employed

pytestmark = pytest.mark.unit

FABRIC = leaf_spine(servers=32, oversubscription=2).topology("fabric")
"""Four leaves of eight servers, and four spines."""


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


def leaf(host: str) -> int:
    return int(host[1:]) // 8
