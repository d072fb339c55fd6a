# SPDX-License-Identifier: Apache-2.0
"""A real lab on a leaf-spine: flows take the plan's cables, by the counters of its ports."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from roundabout.core.paths import ROOT
from roundabout.plan.routes import list_routes
from roundabout.runner.trial.cross_traffic import sender_command, sink_command, traffic_endpoints
from roundabout.runner.trial.jobs import job_description, source_ports, worker_ports
from roundabout.spec import TrialSpec
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.forwarding import switch_routes
from tests.deadline import wait_for
from tests.running import Running
from tests.several_paths.fabrics import leaf_spine, rails
from tests.several_paths.lab_transfers import SENT, build_lab, carried, send
from tests.several_paths.trials import build_leaf_spine, build_rails, planned

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")]

PROGRAMS = {"consistent": ROOT / "build/bin", "iperf": ROOT / "crossgen"}  # folders of generators' programs


@pytest.fixture(scope="module")
def spec() -> TrialSpec:
    return build_leaf_spine({"name": "ecmp", "seed": 5}, "dctcp", 2)


@pytest.fixture(scope="module")
def lab(spec: TrialSpec) -> Iterator[Lab]:
    with build_lab(spec.topology, verify=False) as built:
        yield built


def test_flows_take_the_cables_of_the_plan(lab: Lab, spec: TrialSpec) -> None:
    lab.prepare(spec)
    assert lab.read_back(spec) == []
    for route in list_routes(spec):
        workers = spec.jobs[route.user].workers
        sender, receiver = workers.index(route.sender), workers.index(route.receiver)
        before = carried(lab)
        own = source_ports(spec, route.user)[sender] + route.number
        send(lab, (route.sender, own), (route.receiver, worker_ports(spec, route.user)[receiver]))
        used = {link for (link, _), size in (carried(lab) - before).items() if size > SENT}
        assert used == set(route.cables[1:])  # the first is the host's, which is no switch's port


def test_other_flows_take_the_route_of_their_hosts(lab: Lab, spec: TrialSpec) -> None:
    lab.prepare(spec)
    before = carried(lab)
    send(lab, ("s1", 40_000), ("s2", 40_001))
    used = {link for (link, _), size in (carried(lab) - before).items() if size > SENT}
    assert used == {hop.link.name for hop in spec.topology.path("s1", "s2")[1:]}


def test_a_route_that_changed_is_found(lab: Lab, spec: TrialSpec) -> None:
    lab.prepare(spec)
    switch_routes.set_routes(lab.files, lab.layout)
    assert any("found none" in line for line in lab.read_back(spec))


def test_trees_carry_the_bytes_of_the_plan_on_its_cables() -> None:
    """Real workers all-reduce in both trees. Headers and ACKs take less than a flow does of most cables."""
    spec = build_rails(leaf_spine(), ["s0", "s1", "s2", "s3"], "tree", 2, 0.2)
    job, ports = spec.jobs["j"], source_ports(spec, "j")
    phase = job.profile.phases[-1]
    with build_lab(spec.topology, verify=False) as lab:
        lab.prepare(spec)
        before = carried(lab)
        for rank, events in enumerate(play(lab, spec)):
            flows = [event for event in events if event["event"] == "flow"]
            own = [each for each in job.transfers(phase) if each.sender == rank]
            planned_flows = {
                (each.receiver, ports[rank] + number, spec.iterations * lab.bytes_on_host(each.bytes) // job.flows)
                for each in own
                for number in job.flow_numbers(each)
            }
            assert {(flow["peer_rank"], flow["local_port"], flow["bytes_acked"]) for flow in flows} == planned_flows
        used = carried(lab) - before
    for hop, size in spec.bytes_by_hop("j", phase).items():
        if hop.sender in spec.topology.switches:
            planned_bytes = spec.iterations * lab.bytes_on_host(size)
            assert planned_bytes < used[hop.link.name, hop.receiver] < 1.2 * planned_bytes


def play(lab: Lab, spec: TrialSpec) -> list[list[Any]]:
    """Return the events of each worker of the job, which are started in their hosts' network namespaces."""
    document, pids = job_description(planned(spec), "j", lab), lab.live_pids()
    with ExitStack() as stack:
        workers = []
        for rank, host in enumerate(spec.jobs["j"].workers):
            words = [str(ROOT / "build/bin/replay"), "--rank", str(rank), "--job", json.dumps(document)]
            workers.append(Running(["nsenter", "-t", str(pids[host]), "-n", "--", *words]))
            stack.callback(workers[-1].kill)
            workers[-1].say("secret open-sesame")
        for worker in workers:
            assert worker.event() == {"event": "ready"}
        for worker in workers:
            worker.begin()
        return [worker.events() for worker in workers]


@pytest.mark.parametrize("kind", ["consistent", "iperf"])
def test_cross_traffic_takes_the_nics_of_its_rail(kind: str) -> None:
    """Real generators of rail 1: what comes back leaves by it, too."""
    traffic = {"kind": kind, "from": "s0", "to": ["s1"], "load_gbps": 20, "rail": 1}
    fields = {"cross_traffic": {"other": traffic}, "queue": "step"}
    trial = planned(build_rails(rails(), ["s0", "s1"], "ring", 1, 0.5, **fields))
    (part,) = traffic_endpoints(trial)
    with build_lab(trial.spec.topology, verify=False) as lab, ExitStack() as stack:
        lab.prepare(trial.spec)
        programs = {"s1": sink_command(lab, "s1", part), "s0": sender_command(lab, trial, part)}
        for host, words in programs.items():
            own = [word.replace(f"{lab.hosts[host].prefix}/bin", str(PROGRAMS[kind])) for word in words]
            running = Running(["nsenter", "-t", str(lab.live_pids()[host]), "-n", "--", *own])
            stack.callback(running.kill)
            running.say(f"secret {part.secret}")
            while running.event().get("event") != "ready":
                pass
        before = carried(lab)
        running.begin()
        wait_for(lambda: (carried(lab) - before)["s1-1", "s1"] > SENT)
        assert {link for link, _ in carried(lab) - before} == {"s0-1", "s1-1"}


@pytest.mark.parametrize("pxn", [False, True])
def test_flows_take_the_nics_and_cables_of_the_plan(pxn: bool) -> None:
    """Servers with two NICs: links of both are measured, and each flow of two workers crosses its plan's alone."""
    spec = build_rails(rails(2, 2, pxn), ["s0", "s0", "s1", "s1"], "all-to-all", 1, 0.3)
    job, own_ports, ports = spec.jobs["j"], source_ports(spec, "j"), worker_ports(spec, "j")
    with build_lab(spec.topology) as lab:
        assert {link.link for link in lab.record.measured} >= {"s0-0", "s0-1", "s1-0", "s1-1"}
        lab.prepare(spec)
        for sender, receiver in ((0, 2), (1, 2), (3, 0), (2, 1)):
            flow = job.flow("j", sender, receiver, 0, spec.topology)
            before = carried(lab)
            send(lab, (flow.sender, own_ports[sender]), (flow.receiver, ports[receiver]), flow.nics)
            used = {link for (link, _), size in (carried(lab) - before).items() if size > SENT}
            assert used == {hop.link.name for hop in spec.topology.path(*flow)[1:]}
            back = {link for (link, _), size in (carried(lab) - before).items() if 0 < size < SENT}
            assert back == {hop.link.name for hop in spec.topology.path(*flow.turned)[1:]}
        assert lab.read_back(spec) == []
