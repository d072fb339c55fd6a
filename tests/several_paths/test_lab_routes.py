# SPDX-License-Identifier: Apache-2.0
"""Routes that a lab gives its switches: they lead each flow along the plan's route, without a lab."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.plan.routes import list_routes
from roundabout.runner.trial.captures import check_capture_budget
from roundabout.runner.trial.jobs import job_description, source_ports, worker_ports
from roundabout.spec import load_topology
from roundabout.spec.capture import Capture
from roundabout.testbeds.lab.forwarding.switch_routes import Entry, list_entries
from roundabout.testbeds.lab.network import link_measurement
from roundabout.testbeds.lab.network.layout import HostNic, Layout, lay_out
from roundabout.testbeds.lab.provider import refuse_captures_behind_queues, refuse_hidden_flows
from tests.several_paths.fabrics import rails
from tests.several_paths.trials import build_leaf_spine, build_rails, plan_lab, planned, trained_by_ddp

pytestmark = pytest.mark.unit

Ports = tuple[int, int]


def follow(layout: Layout, entries: list[Entry], sender: HostNic, receiver: HostNic, ports: Ports) -> list[str]:
    """Return the cables that a packet crosses from one NIC to another, as `forward` chooses them."""
    ends = sender.address, receiver.address
    table = {entry[:-1]: entry.left_by for entry in entries}
    (cable,) = (each for each in layout.cables if each.ends[1] == sender)
    cables, at = [cable.link.name], cable.ends[0]
    while at != receiver:
        left_by = table.get((at.ifindex, *ends, *ports)) or table[at.ifindex, *ends, 0, 0]
        (port,) = (each for each in layout.ports if each.ifindex == left_by)
        assert port.switch == at.node
        cables.append(port.link)
        at = layout.far_ends[left_by]
    return cables


def first_nics(layout: Layout, *hosts: str) -> tuple[HostNic, ...]:
    """Return the first NIC of each host."""
    return tuple(layout.nics[host][0] for host in hosts)


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
        assert follow(layout, entries, *first_nics(layout, route.sender, route.receiver), ports) == list(route.cables)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(2, 3),
    st.integers(2, 3),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from(["ring", "tree", "all-to-all"]),
)
def test_flows_of_workers_take_the_nics_and_routes_of_the_plan(
    servers: int, nics: int, pxn: bool, flows: int, pattern: str
) -> None:
    """Workers bind the addresses that trainers/PROTOCOL.md says."""
    workers = [f"s{number}" for number in range(servers)] * 2
    spec = build_rails(rails(servers, nics, pxn), workers, pattern, flows, 0.1)
    layout, job = lay_out(spec.topology), spec.jobs["j"]
    document = job_description(planned(spec), "j", plan_lab(spec.topology))
    entries = list_entries(layout, spec)
    by_address = {nic.address: nic for own in layout.nics.values() for nic in own}
    for transfer in job.transfers(job.profile.phases[-1]):
        sender, receiver = (document["workers"][rank] for rank in (transfer.sender, transfer.receiver))
        for number in job.flow_numbers(transfer) if sender["name"] != receiver["name"] else ():
            flow = job.flow("j", transfer.sender, transfer.receiver, number, spec.topology)
            own, other = described_nics(document, sender, receiver, number)
            ports = sender["source_port"] + number, receiver["port"]
            cables = [hop.link.name for hop in spec.topology.path(*flow)]
            assert follow(layout, entries, by_address[own], by_address[other], ports) == cables
            back = follow(layout, entries, by_address[other], by_address[own], ports[::-1])
            assert back == [hop.link.name for hop in spec.topology.path(*flow.turned)]


def described_nics(document: Any, sender: Any, receiver: Any, number: int) -> tuple[str, str]:
    """Return the addresses at the ends of a connection, as trainers/PROTOCOL.md says."""
    to = receiver["nic"] + number
    leaves = to if document.get("pxn") else sender["nic"] + number
    return sender["nics"][leaves % len(sender["nics"])], receiver["nics"][to % len(receiver["nics"])]


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
        assert follow(layout, entries, *first_nics(layout, "s0", receiver), (1, 2)) == cables


def test_parallel_cables_have_interfaces_of_their_own() -> None:
    ports = lay_out(load_topology("cluster-24-48links")).ports
    assert len({(port.switch, port.interface) for port in ports}) == len(ports)


def test_a_trainer_that_chooses_its_ports_is_refused_with_ecmp() -> None:
    spec: Any = build_leaf_spine({"name": "ecmp"}, "dctcp")
    with pytest.raises(
        UsageError, match=r"jobs.j0.trainer.name: found ddp, allowed with ecmp routing in a lab is repl"
    ):
        refuse_hidden_flows(trained_by_ddp(spec, "ecmp"))
    refuse_hidden_flows(trained_by_ddp(spec, "static"))


def test_nics_have_interfaces_and_addresses_of_their_own() -> None:
    layout = lay_out(rails(3, 2))
    nics = [nic for own in layout.nics.values() for nic in own]
    assert [nic.address for nic in nics if nic.number == 0] == ["10.77.0.1", "10.77.0.2", "10.77.0.3"]
    assert all(len({getattr(nic, name) for nic in nics}) == 6 for name in ("address", "mac", "ifindex"))
    assert [nic.interface for nic in layout.hosts["s1"].nics] == ["eth0", "eth1"]


def test_links_of_all_rails_are_measured() -> None:
    layout = lay_out(rails(2, 2))
    access = [port for port in layout.ports if port.towards in layout.hosts]
    for port in access:
        probe = link_measurement.plan_probe(layout, port)
        assert probe
        assert {str(nic.number) for flow in probe.flows for nic in flow} == {port.link[-1]}


def test_captures_behind_a_queue_of_a_further_nic_are_refused() -> None:
    topology = rails()
    spec = build_rails(topology, ["s0", "s1"], "ring", 1, 0.5).model_copy(update={"capture": Capture(hosts=("s0",))})
    refuse_captures_behind_queues(spec)
    links = [link.model_copy(update={"nic_queue": link.name == "s0-1"}) for link in topology.links]
    queueing = spec.model_copy(update={"topology": topology.model_copy(update={"links": tuple(links)})})
    with pytest.raises(UsageError, match=r"found s0 on topology rails, allowed in a lab is none .* as s0-1"):
        refuse_captures_behind_queues(queueing)


def test_a_budget_of_captures_is_shared_by_the_nics_of_a_host() -> None:
    spec = build_rails(rails(nics=8), ["s0", "s1"], "ring", 1, 0.5)
    check_capture_budget(spec.model_copy(update={"capture": Capture(hosts=("s0",), budget_mb=8)}))
    with pytest.raises(UsageError, match=r"capture.budget_mb: found 7, allowed are 8 or more: 1 for each NIC of s0"):
        check_capture_budget(spec.model_copy(update={"capture": Capture(hosts=("s0",), budget_mb=7)}))
