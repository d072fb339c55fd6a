# SPDX-License-Identifier: Apache-2.0
"""A rack whose topology has several paths: its switches choose routes, and the inventory says how they answer."""

from pathlib import Path

import pytest

from roundabout.runner.trial.jobs import job_description
from roundabout.runner.trial.routes.flow_probes import list_probes
from roundabout.spec import load_topology
from roundabout.testbeds.rack.inventory import Inventory, read_inventory
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import Rack
from roundabout.testbeds.rack.variables import trial_document
from tests.several_paths.trials import build_leaf_spine, build_rails, planned

pytestmark = pytest.mark.unit

TOPOLOGY = load_topology("leaf-spine-2x2")
INVENTORY = """
all:
  vars: {line_rate_gbps: 50, payload_rate_gbps: 43}
  children:
    rack:
      vars: {driver: inbox, mtu_bytes: 4200}
      hosts:
        s0: {ansible_host: a, nic: eth0, address: 10.10.0.10/16, link: s0}
        s1: {ansible_host: b, nic: eth0, address: 10.10.0.11/16, link: s1}
        s2: {ansible_host: c, nic: eth0, address: 10.10.1.10/16, link: s2}
        s3: {ansible_host: d, nic: eth0, address: 10.10.1.11/16, link: s3}
    switches:
      vars:
        system: sonic
        ecn: {cell_bytes: 80, Kmin_cells: 1000, Kmax_cells: 2000, Pmax_percent: 100}
        cable_length_m: 5
      hosts:
        leaf0:
          ansible_host: l0
          addresses: [10.10.0.1, 10.255.0.1]
          ports: {s0: Ethernet0, s1: Ethernet4, leaf0-spine0: Ethernet8, leaf0-spine1: Ethernet12}
        leaf1:
          ansible_host: l1
          addresses: [10.10.1.1]
          ports: {s2: Ethernet0, s3: Ethernet4, leaf1-spine0: Ethernet8, leaf1-spine1: Ethernet12}
        spine0: {ansible_host: p0, ports: {leaf0-spine0: Ethernet0, leaf1-spine0: Ethernet4}}
        spine1: {ansible_host: p1, ports: {leaf0-spine1: Ethernet0, leaf1-spine1: Ethernet4}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "inventory"
    path.write_text(INVENTORY)
    return path


def test_the_inventory_gives_addresses_to_switches(path: Path) -> None:
    rack = Rack(read_inventory(path), TOPOLOGY, "rack", frozenset())
    assert rack.switch_addresses == {"10.10.0.1": "leaf0", "10.255.0.1": "leaf0", "10.10.1.1": "leaf1"}


def test_switches_without_addresses_keep_the_identity_of_a_rack(path: Path) -> None:
    text = read_inventory(path).model_dump_json()
    assert text.count('"addresses"') == 2
    assert Inventory.model_validate_json(text) == read_inventory(path)


def test_a_trial_on_several_paths_may_run_and_its_flows_may_use_ports_again(path: Path) -> None:
    spec = build_leaf_spine({"name": "ecmp"}, "dctcp").model_copy(update={"topology": TOPOLOGY})
    RackProvider(path).check_trial(spec)
    assert trial_document(spec, "s0", read_inventory(path), rdma=False)["sysctl"] == {"net.ipv4.tcp_tw_reuse": 1}


def test_a_rack_plays_trees_with_ports_of_both(path: Path) -> None:
    """The workers' program is the lab's. Servers and switches were not tried."""
    spec = build_rails(TOPOLOGY, ["s0", "s1", "s2", "s3"], "tree", 2, 0.1)
    RackProvider(path).check_trial(spec)
    rack = Rack(read_inventory(path), TOPOLOGY, "rack", frozenset())
    probes = list_probes(planned(spec), rack)
    assert {probe.source_port for probe in probes} == {61_000, 61_001, 61_002, 61_003}
    (phase,) = (each for each in job_description(planned(spec), "j", rack)["phases"] if "transfers" in each)
    assert {each[4] for each in phase["transfers"]} == {0, 1}
