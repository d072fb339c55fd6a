# SPDX-License-Identifier: Apache-2.0
"""Runs on servers with several NICs: lab hosts with an interface for each rail pose as them."""

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.machine.machine_lease import BusyError
from roundabout.spec.topology import Topology
from roundabout.store import Run
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.rack.provider import RackProvider
from tests.observers import Silent
from tests.rack.lab_hosts.rack_runs import inventory_of
from tests.rack.lab_hosts.rack_trials import run
from tests.several_paths.fabrics import rails
from tests.several_paths.lab_transfers import build_lab

pytestmark = [pytest.mark.lab, pytest.mark.proof, pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")]

FIELDS = {"line_rate_gbps": 50, "payload_rate_gbps": 43}
EXPERIMENT = """
schema: 1
name: rails
about: A ring by a channel on each rail
topology: rails
topologies: {topologies}
profile: resnet50-1600
jobs: {{j: {{workers: [s0, s1], flows: {nics}}}}}
transport: {{name: cubic}}
iterations: 2
capture: {{hosts: [s0], budget_mb: {nics}}}
"""


@contextmanager
def as_rack(topology: Topology, folder: Path) -> Iterator[tuple[Lab, Path]]:
    """Yield a lab of a topology, and the inventory by which its hosts are servers."""
    ports: dict[str, dict[str, str]] = defaultdict(dict)
    for link in topology.links:
        for switch in set(link.ends) & set(topology.switches):
            ports[switch][link.name] = f"Ethernet{4 * len(ports[switch])}"
    with build_lab(topology, verify=False) as lab:
        inventory = folder / "inventory"
        inventory.write_text(inventory_of(lab, FIELDS, ports))
        yield lab, inventory


def routes_of(lab: Lab) -> dict[str, str]:
    """Return all routes of each host, in all tables."""
    words = ["ssh", "-F", str(lab.ssh_config())]
    route = ["ip", "-4", "route", "show", "table", "all"]
    return {host: subprocess.check_output([*words, host, *route], text=True) for host in lab.hosts}


def rows(ended: Run, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ended.table(table, valid_only=False).to_pylist()
    return found


@pytest.mark.parametrize("nics", [2, 8])
def test_a_run_leases_sets_samples_and_captures_every_nic(
    nics: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundabout.runner.run.MAX_REPEATS", 0)
    topology = rails(2, nics, pxn=True)
    fields = {"rails": topology.model_dump(mode="json", by_alias=True, exclude={"name"})}
    experiment = EXPERIMENT.format(topologies=json.dumps(fields), nics=nics)
    interfaces = [f"eth{number}" for number in range(nics)]
    with as_rack(topology, tmp_path) as (lab, inventory):
        before = routes_of(lab)
        ended = run(inventory, experiment, tmp_path, Silent())
        assert routes_of(lab) == before
        first, second = RackProvider(inventory), RackProvider(inventory)
        first.create_hosts(topology, "first")
        with pytest.raises(BusyError, match='leased: host s0 {"owner": "first"'):
            second.create_hosts(topology, "second")
        first.undo({"kind": "testbed", "name": "first"})
    (trial,) = ended.trials()
    for settings in trial["settings"].values():
        assert {target.partition("table")[2] for target in settings["after"]["route"]} == {
            "" if number == 0 else f" {1000 + number}" for number in range(nics)
        }
    assert sorted(each["device"] for each in rows(ended, "captures")) == interfaces
    addresses = {nic.address for nic in lab.hosts["s0"].nics}
    assert addresses <= {row["source"] for row in rows(ended, "packets") if row["payload_bytes"]}
    sent = {
        each: [row["tx_bytes"] for row in rows(ended, "counters") if row["interface"] == each] for each in interfaces
    }
    assert all(max(each) > min(each) for each in sent.values())
