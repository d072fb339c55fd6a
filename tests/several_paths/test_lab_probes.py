# SPDX-License-Identifier: Apache-2.0
"""Probes of flows' routes across routers of this kernel: they find what switches do, not what was planned."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from roundabout.core.paths import ROOT
from roundabout.runner.trial.routes.flow_probes import FlowProbe, list_probes, probe_request
from roundabout.runner.trial.routes.route_readback import FoundRoute, describe_differences, find_route
from roundabout.spec import TrialSpec, load_experiment
from roundabout.testbeds.lab import Lab
from tests.several_paths import routers
from tests.several_paths.lab_transfers import SENT, build_lab, carried, send
from tests.several_paths.trials import planned

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")]

PROBE = [sys.executable, "-IS", str(ROOT / "collectors/route_probe.py")]


def find_routes(lab: Lab, probes: list[FlowProbe], switch_of: dict[str, str]) -> list[FoundRoute]:
    """Probe the routes of flows from their hosts, all at once."""
    senders = dict.fromkeys(probe.sender for probe in probes)
    of_host = {host: [probe for probe in probes if probe.sender == host] for host in senders}
    stdin = {host: json.dumps([probe_request(probe) for probe in own]) for host, own in of_host.items()}
    found = routers.run_on_hosts(lab, senders, PROBE, stdin)
    answers = {
        probe: each for host, own in of_host.items() for probe, each in zip(own, json.loads(found[host]), strict=True)
    }
    return [find_route(probe, answers[probe], switch_of, lab.topology) for probe in probes]


Routed = tuple[Lab, dict[str, str]]  # a lab whose switches are routers, and the switch of each of their addresses


@contextmanager
def build_routed(name: str) -> Iterator[Routed]:
    """Yield a lab with the topology of an experiment of the catalog."""
    with build_lab(cells_of(name)[0].topology, verify=False) as lab:
        yield lab, routers.make_routers(lab)


def cells_of(name: str) -> list[TrialSpec]:
    return [cell.spec for cell in load_experiment(name).cells]


@pytest.fixture(scope="module")
def leaf_spine() -> Iterator[Routed]:
    with build_routed("ecmp-collision") as routed:
        yield routed


def check_planned(name: str, lab: Lab, switch_of: dict[str, str]) -> None:
    """Give the routers the plan's routes of each cell's flows, which probes must find."""
    for spec in cells_of(name):
        routers.set_routes(lab, spec)
        probes = list_probes(planned(spec), lab)
        found = find_routes(lab, probes, switch_of)
        assert {route.as_planned for route in found} == {True}, describe_differences(found)
        assert [route.cables for route in found] == [tuple(hop.link.name for hop in probe.planned) for probe in probes]


def test_probes_find_the_planned_route_of_each_flow(leaf_spine: Routed) -> None:
    check_planned("ecmp-collision", *leaf_spine)


def test_probes_find_the_planned_route_of_each_flow_on_rails() -> None:
    with build_routed("rails") as routed:
        check_planned("rails", *routed)


def test_probes_find_the_route_that_a_flows_data_take(leaf_spine: Routed) -> None:
    """Linux chooses among the spines by a hash that no plan has; ports' counters show what it chose."""
    lab, switch_of = leaf_spine
    routers.let_kernel_choose(lab)
    spec = cells_of("ecmp-collision")[0]
    jobs = {name: job.model_copy(update={"flows": 3}) for name, job in spec.jobs.items()}
    found = find_routes(lab, list_probes(planned(spec.model_copy(update={"jobs": jobs})), lab), switch_of)
    assert False in {route.as_planned for route in found}  # but in one of 2**12 boots, each of which has its own hash
    for route in found:
        before = carried(lab)
        assert route.source_port and route.destination_port
        send(lab, (route.sender, route.source_port), (route.receiver, route.destination_port))
        used = {link for (link, _), size in (carried(lab) - before).items() if size > SENT}
        assert used == set(route.cables[1:])
