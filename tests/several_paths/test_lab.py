# SPDX-License-Identifier: Apache-2.0
"""A real lab on a leaf-spine: flows take the plan's cables, by the counters of its ports."""

import os
import socket
from collections import Counter
from collections.abc import Iterator

import pytest

from roundabout.plan.routes import list_routes
from roundabout.runner.trial.jobs import source_ports, worker_ports
from roundabout.spec import TrialSpec
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.forwarding import switch_routes
from roundabout.testbeds.lab.network.namespaces import run_inside
from tests.several_paths.trials import build_leaf_spine

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")]

SENT = 400_000


@pytest.fixture(scope="module")
def spec() -> TrialSpec:
    return build_leaf_spine({"name": "ecmp", "seed": 5}, "dctcp", 2)


@pytest.fixture(scope="module")
def lab(spec: TrialSpec) -> Iterator[Lab]:
    name = f"test-{os.getpid()}-paths"
    built = Lab.create(spec.topology, name, verify=False)
    try:
        yield built
    finally:
        Lab.remove(name)


def send(lab: Lab, sender: tuple[str, int], receiver: tuple[str, int]) -> None:
    """Send SENT bytes over TCP from one host and port to another."""
    pids, ends = lab.live_pids(), [(lab.hosts[host].address, port) for host, port in (sender, receiver)]
    with run_inside(pids[receiver[0]], lambda: socket.create_server(ends[1])) as listener:
        connect = lambda: socket.create_connection(ends[1], timeout=5, source_address=ends[0])  # noqa: E731
        with run_inside(pids[sender[0]], connect) as out, listener.accept()[0] as into:
            out.sendall(bytes(SENT))
            out.shutdown(socket.SHUT_WR)
            while into.recv(1 << 16):
                pass


def carried(lab: Lab) -> Counter[tuple[str, str]]:
    """Return the bytes that switch ports have sent, by link and receiver."""
    counted = lab.counters()
    return Counter({(port.link, port.towards): counted[port.ifindex].bytes for port in lab.ports})


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
