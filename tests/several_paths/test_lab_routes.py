# SPDX-License-Identifier: Apache-2.0
"""Routes that a lab gives its switches: they lead each flow along the plan's route, without a lab."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.plan.routes import list_routes
from roundabout.runner.trial.jobs import source_ports, worker_ports
from roundabout.spec import TrialSpec, load_topology
from roundabout.spec.topology import Topology
from roundabout.spec.trainers.ddp import Trainer as Ddp
from roundabout.testbeds.lab.forwarding.switch_routes import Entry, list_entries
from roundabout.testbeds.lab.network.layout import Layout, lay_out
from roundabout.testbeds.lab.provider import refuse_hidden_flows
from tests.several_paths.fabrics import rails
from tests.several_paths.trials import build_leaf_spine

pytestmark = pytest.mark.unit


def follow(layout: Layout, entries: list[Entry], sender: str, receiver: str, ports: tuple[int, int]) -> list[str]:
    """Return the cables that a packet crosses, as `forward` chooses them."""
    ends = layout.hosts[sender].address, layout.hosts[receiver].address
    table = {entry[:-1]: entry.left_by for entry in entries}
    (cable,) = (each for each in layout.cables if each.ends[1].node == sender)
    cables, at = [cable.link.name], cable.ends[0]
    while at.node != receiver:
        left_by = table.get((at.ifindex, *ends, *ports)) or table[at.ifindex, *ends, 0, 0]
        (port,) = (each for each in layout.ports if each.ifindex == left_by)
        assert port.switch == at.node
        cables.append(port.link)
        at = layout.far_ends[left_by]
    return cables


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["static", "ecmp"]), st.integers(0, 1000), st.integers(1, 3))
def test_flows_of_jobs_take_the_routes_of_the_plan(rule: str, seed: int, flows: int) -> None:
    spec = build_leaf_spine({"name": rule, "seed": seed}, "dctcp", flows)
    layout = lay_out(spec.topology)
    entries = list_entries(layout, spec)
    for route in list_routes(spec):
        workers = spec.jobs[route.user].workers
        sender, receiver = workers.index(route.sender), workers.index(route.receiver)
        ports = (
            source_ports(spec, route.user)[sender] + route.number,
            worker_ports(spec, route.user)[receiver],
        )
        assert follow(layout, entries, route.sender, route.receiver, ports) == list(route.cables)


def test_packets_that_come_back_take_the_route_of_the_receivers_flow() -> None:
    """As in the packet-level model: ACKs are hashed with the flow's source port."""
    spec = build_leaf_spine({"name": "ecmp", "seed": 5}, "dctcp", 2)
    entries = {entry[:-1] for entry in list_entries(lay_out(spec.topology), spec) if entry.sender_port}
    assert all((each[2], each[1], each[4], each[3]) in {other[1:] for other in entries} for each in entries)


def test_any_two_hosts_are_joined_by_their_shortest_route() -> None:
    fabric = load_topology("cluster-24-48links")
    layout = lay_out(fabric)
    entries = list_entries(layout)
    for receiver in ("s1", "s5", "s23"):
        cables = [hop.link.name for hop in fabric.path("s0", receiver)]
        assert follow(layout, entries, "s0", receiver, (1, 2)) == cables


def test_parallel_cables_have_interfaces_of_their_own() -> None:
    ports = lay_out(load_topology("cluster-24-48links")).ports
    assert len({(port.switch, port.interface) for port in ports}) == len(ports)


def test_a_trainer_that_chooses_its_ports_is_refused_with_ecmp() -> None:
    spec: Any = build_leaf_spine({"name": "ecmp"}, "dctcp")
    with pytest.raises(
        UsageError, match=r"jobs.j0.trainer.name: found ddp, allowed with ecmp routing in a lab is repl"
    ):
        refuse_hidden_flows(_trained_by_ddp(spec, "ecmp"))
    refuse_hidden_flows(_trained_by_ddp(spec, "static"))


def test_a_lab_refuses_hosts_with_several_nics() -> None:
    with pytest.raises(UsageError, match="topology rails: found hosts with several NICs, allowed in a lab is one NIC"):
        lay_out(rails())


def _trained_by_ddp(spec: TrialSpec, rule: str) -> TrialSpec:
    topology = Topology.model_validate(spec.topology.model_dump() | {"routing": {"name": rule}})
    jobs = {name: job.model_copy(update={"trainer": Ddp(name="ddp", model="VGG19")}) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"topology": topology, "jobs": jobs})
