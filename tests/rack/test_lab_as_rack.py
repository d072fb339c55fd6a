# SPDX-License-Identifier: Apache-2.0
"""A lab's hosts pose as a rack's machines: reached over ssh alone, by an inventory, as servers are."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from roundabout.errors import RoundaboutError
from roundabout.runner.artefacts import ROOT, artefacts
from roundabout.runner.execute import Runner
from roundabout.runner.lease import BusyError
from roundabout.runner.rack_facility import RackFacility
from roundabout.spec import load_topology
from roundabout.spec.load import load_experiment
from roundabout.testbeds.lab import Lab

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")

INVENTORY = """
all:
  vars: {{ssh_config: {config}, line_rate_gbps: 50, payload_rate_gbps: 43}}
  children:
    rack:
      vars: {{driver: inbox, gpu: none, mtu_bytes: 1500, roundabout_prefix: {prefix}, roundabout_state: {state}}}
      hosts:
{hosts}
    switches:
      vars:
        system: sonic
        ecn: {{cell_bytes: 80, Kmin_cells: 10, Kmax_cells: 20, Pmax_percent: 100, pfc_skid_cells: 40, queue_cells: 99}}
      hosts:
        tor0: {{ansible_host: tor0, ports: {{s0: Ethernet0, s1: Ethernet4, L1: Ethernet8}}}}
        tor1: {{ansible_host: tor1, ports: {{s2: Ethernet0, s3: Ethernet4, L1: Ethernet8}}}}
"""
EXPERIMENT = """
schema: 1
name: tiny
about: Two jobs for a moment, each with its own congestion control
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2], transport: {name: reno}}
  j2: {profile: vgg19-fig1, workers: [s1, s3], transport: {name: cubic}}
iterations: 3
factors: {variant: {fair: {}}}
repetitions: 1
"""


class Silent:
    """An observer that only keeps why trials were invalid."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def trial_ended(self, trial: Any, reasons: list[str], again: bool) -> None:
        self.reasons += reasons

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    name = f"test-rack-{os.getpid()}"
    yield Lab.up(load_topology("dumbbell-2x2"), name, verify=False)
    Lab.down(name)


@pytest.fixture
def inventory(lab: Lab, tmp_path: Path) -> Path:
    hosts = "\n".join(
        f"        {host.name}: {{ansible_host: {host.ssh_alias}, nic: {host.interface}, "
        f"address: {host.address}/{host.prefix_length}, link: {host.name}}}"
        for host in lab.hosts.values()
    )
    path = tmp_path / "inventory"
    prefix = lab.hosts["s0"].prefix
    path.write_text(INVENTORY.format(config=lab.ssh_config(), hosts=hosts, prefix=prefix, state=lab.settings_state))
    return path


@pytest.fixture
def experiment(tmp_path: Path) -> Any:
    """Lab links are slower by the lab's scale, which a rack does not know: so is what the job sends."""
    library = tmp_path / "experiments"
    shutil.copytree(ROOT / "experiments", library)
    profile = library / "profiles/vgg19-fig1.yaml"
    profile.write_text(profile.read_text().replace("574_680_000", "4_000_000"))
    path = tmp_path / "tiny.yaml"
    path.write_text(EXPERIMENT)
    return load_experiment(path, library)


def on_host(lab: Lab, host: str, *command: str) -> str:
    done = subprocess.run(["ssh", "-F", lab.ssh_config(), host, *command], capture_output=True, text=True, check=True)
    return done.stdout


def test_an_experiment_on_a_rack(lab: Lab, inventory: Path, experiment: Any, tmp_path: Path) -> None:
    before = on_host(lab, "s0", "ip", "route")
    observer = Silent()
    run = Runner(RackFacility(inventory), observer, artefacts(), tmp_path / "state/roundabout").start(
        experiment, "tiny", tmp_path / "runs"
    )
    assert run.manifest["testbed"]["kind"] == "rack"
    assert run.manifest["testbed"]["emulated"] is False
    assert run.manifest["testbed"]["identity"]["capabilities"] == ["own clock"]
    (trial,) = run.trials()
    found = {host: each["after"]["route"] for host, each in trial["settings"].items()}
    assert {name["congctl"] for name in found["s0"].values()} == {"reno"}
    assert {name["congctl"] for name in found["s1"].values()} == {"cubic"}
    assert run.table("iterations", valid_only=False).num_rows == 2 * 2 * 3
    assert on_host(lab, "s0", "ip", "route") == before


def test_a_second_user_is_told_who_has_the_rack(inventory: Path) -> None:
    topology = load_topology("dumbbell-2x2")
    first, second = RackFacility(inventory), RackFacility(inventory)
    first.raise_testbed(topology, "first")
    try:
        with pytest.raises(BusyError, match='leased: host s0 {"owner": "first"'):
            second.raise_testbed(topology, "second")
        second.undo({"kind": "testbed", "name": "first"})  # only who holds it gives it back
        with pytest.raises(BusyError):
            second.raise_testbed(topology, "second")
    finally:
        first.undo({"kind": "testbed", "name": "first"})
    second.raise_testbed(topology, "second")
    second.undo({"kind": "testbed", "name": "second"})


def lose(lab: Lab, host: str) -> None:
    """Break every connection to the host, once."""
    pid = lab.pids()[host]
    namespace = os.readlink(f"/proc/{pid}/ns/pid")
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(entry / "ns/pid") == namespace and b"sshd" in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def when_started(folder: Path, act: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        deadline = time.monotonic() + 60
        while not any('"start"' in path.read_text() for path in folder.glob("runs/*/*/partial/*/events.jsonl")):
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_host_that_is_lost_costs_an_attempt(lab: Lab, inventory: Path, experiment: Any, tmp_path: Path) -> None:
    observer = Silent()
    thread = when_started(tmp_path, lambda: lose(lab, "s2"))
    runner = Runner(RackFacility(inventory), observer, artefacts(), tmp_path / "state/roundabout")
    run = runner.start(experiment, "tiny", tmp_path / "runs")
    thread.join()
    assert any("lost host s2" in reason for reason in observer.reasons)
    assert len(run.trials()) == 1


def test_a_host_that_stays_lost_ends_the_run_with_one_message(
    lab: Lab, inventory: Path, experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundabout.runner.rack_facility.REBOOT_S", 1)
    pid = lab.pids()["s2"]
    assert pid
    thread = when_started(tmp_path, lambda: os.kill(pid, signal.SIGKILL))
    runner = Runner(RackFacility(inventory), Silent(), artefacts(), tmp_path / "state/roundabout")
    with pytest.raises(RoundaboutError, match="host s2 does not answer"):
        runner.start(experiment, "tiny", tmp_path / "runs")
    thread.join()
