# SPDX-License-Identifier: Apache-2.0
"""What a trial really runs on its hosts and beside its switches, word by word, in a lab and on a rack.

ROUNDABOUT_GOLDEN=1 renews the golden files: read the difference.
"""

import os
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from roundabout.core.paths import ROOT
from roundabout.plan import PlannedTrial, make_plan
from roundabout.runner.hosts.host_group import HostGroup
from roundabout.runner.trial import captures, cross_traffic
from roundabout.runner.trial.jobs import trial_workers
from roundabout.runner.trial.sampler import controller_sampler, host_sampler
from roundabout.spec import load_experiment, load_topology
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.calibration.calibration import load_calibration
from roundabout.testbeds.lab.lifecycle.lab_record import LabRecord
from roundabout.testbeds.lab.provider import LabProvider
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.rack import Rack

pytestmark = pytest.mark.unit

GOLDEN = Path(__file__).with_name("commands")
INVENTORY = """
all:
  vars: {line_rate_gbps: 50, payload_rate_gbps: 43}
  children:
    rack:
      vars: {driver: inbox, mtu_bytes: 4200}
      hosts:
        s0: {ansible_host: a, nic: ens1f0np0, address: 10.0.0.1/24, link: s0}
        s1: {ansible_host: b, nic: ens1f0np0, address: 10.0.0.2/24, link: s1}
        s2: {ansible_host: c, nic: ens1f0np0, address: 10.0.0.3/24, link: s2}
        s3: {ansible_host: d, nic: ens1f0np0, address: 10.0.0.4/24, link: s3}
    switches:
      vars:
        system: sonic
        ecn: {cell_bytes: 80, Kmin_cells: 1000, Kmax_cells: 2000, Pmax_percent: 100}
        cable_length_m: 5
      hosts:
        tor: {ansible_host: sw, ports: {s0: Ethernet0, s1: Ethernet4, s2: Ethernet8, s3: Ethernet12}}
"""
EXPERIMENT = """
name: golden
about: One of everything
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2], transport: {T_us: 100}}
  j2: {profile: resnet50-1600, workers: [s1, s3], start_offset_ms: 20}
transport: {name: dcqcn}
iterations: 10
capture: {hosts: [s0]}
cross_traffic:
  steady: {kind: consistent, from: s0, to: [s2, s3], load_gbps: 5}
  bursts: {kind: burst, from: s1, to: [s2], load_gbps: 5, volumes: exact, connections: fresh}
  tool: {kind: iperf, from: s1, to: [s3], load_gbps: 5, transport: {name: cubic}}
"""


@pytest.fixture
def trial(tmp_path: Path) -> PlannedTrial:
    path = tmp_path / "golden.yaml"
    path.write_text(EXPERIMENT)
    return make_plan(load_experiment(path), testbed_identity={}, artefacts={}).trials[0]


def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(Lab, "pids", lambda _self: {"tor0": 100, "tor1": 101})
    calibration, topology = load_calibration(), load_topology("dumbbell-2x2")
    record = LabRecord(
        name="golden",
        state="up",
        created_utc=datetime.now(UTC),
        scale=calibration.scale,
        calibration=calibration,
        topology=topology,
    )
    return Lab(record)


def rack(folder: Path) -> Rack:
    path = folder / "inventory"
    path.write_text(INVENTORY)
    capabilities = frozenset({"own clock", "rdma", "pfc", "priorities"})
    return Rack(read_inventory(path), load_topology("dumbbell-2x2"), "golden", capabilities)


def commands(site: HostGroup, trial: PlannedTrial, sampler: Path | None) -> Iterator[tuple[str, list[str]]]:
    """Where, and what, in the order in which a trial starts them."""
    capture = trial.spec.capture
    assert capture
    yield from ((f"{host}: capture", captures.capture_command(site.hosts[host], capture)) for host in capture.hosts)
    if sampler:
        yield "controller: sampler", controller_sampler(sampler)
    yield from (("controller: sampler of a switch", argv) for argv in site.switch_samplers())
    for host in site.hosts.values():
        yield f"{host.name}: sampler", host_sampler(host, site.capabilities(), cpu=sampler is None)
    yield from ((f"{worker.host}: {worker}", list(worker.argv)) for worker in trial_workers(trial, site))
    parts = cross_traffic.traffic_endpoints(trial)
    for part in parts:
        for receiver in part.spec.receivers:
            yield f"{receiver}: sink of {part.name}", cross_traffic.sink_command(site, receiver, part)
    for part in parts:
        yield f"{part.spec.sender}: sender of {part.name}", cross_traffic.sender_command(site, trial, part)


def rendered(site: HostGroup, trial: PlannedTrial, sampler: Path | None) -> str:
    sections = (f"# {where}\n{shlex.join(argv)}\n" for where, argv in commands(site, trial, sampler))
    return "\n".join(sections).replace(f"{ROOT}/", "")


@pytest.mark.parametrize("testbed", ["lab", "rack"])
def test_every_command_is_as_it_was_read(
    testbed: str, trial: PlannedTrial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site: HostGroup = lab(monkeypatch) if testbed == "lab" else rack(tmp_path)
    sampler = LabProvider.sampler if testbed == "lab" else None
    path, found = GOLDEN / f"{testbed}.txt", rendered(site, trial, sampler)
    if os.environ.get("ROUNDABOUT_GOLDEN"):
        path.write_text(found)
    assert found == path.read_text()
