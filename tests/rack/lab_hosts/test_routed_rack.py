# SPDX-License-Identifier: Apache-2.0
"""A run on a rack whose switches choose routes: lab hosts pose as servers, and routers of the kernel as switches."""

import os
from collections import defaultdict
from pathlib import Path

import pytest

from roundabout.spec import load_topology
from tests.observers import Notes
from tests.rack.lab_hosts.rack_runs import inventory_of
from tests.rack.lab_hosts.rack_trials import run
from tests.several_paths import routers
from tests.several_paths.lab_transfers import build_lab

pytestmark = [
    pytest.mark.lab,
    pytest.mark.proof,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root"),
]

FIELDS = {"line_rate_gbps": 50, "payload_rate_gbps": 43}
EXPERIMENT = """
schema: 1
name: routed
about: Two jobs with three flows each, for a moment
topology: leaf-spine-2x2
profile: resnet50-1600
jobs: {j1: {workers: [s0, s2], flows: 3}, j2: {workers: [s1, s3], flows: 3}}
transport: {name: cubic}
iterations: 2
repetitions: 2
"""


def test_a_run_records_the_routes_of_its_flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundabout.runner.run.MAX_REPEATS", 0)
    topology = load_topology("leaf-spine-2x2")
    ports: dict[str, dict[str, str]] = defaultdict(dict)
    for link in topology.links:
        for switch in set(link.ends) & set(topology.switches):
            ports[switch][link.name] = f"Ethernet{4 * len(ports[switch])}"
    with build_lab(topology, verify=False) as lab:
        switch_of = routers.make_routers(lab)
        routers.let_kernel_choose(lab)
        text = inventory_of(lab, FIELDS, ports)
        for address, switch in switch_of.items():
            text = text.replace(f"ansible_host: {switch},", f"ansible_host: {switch}, addresses: [{address}],")
        inventory = tmp_path / "inventory"
        inventory.write_text(text)
        notes = Notes()
        found = [trial["found_routes"] for trial in run(inventory, EXPERIMENT, tmp_path, notes).trials()]
    assert len(found[0]) == 12
    assert found[0] == found[1]  # one hash, and the same ports
    assert all(route["unknown"] is None and None not in route["cables"] for route in found[0])
    differing = sum(not route["as_planned"] for route in found[0])
    assert [notice.split(" take")[0] for notice in notes.notices] == [f"{differing} of 12 flows"]
