# SPDX-License-Identifier: Apache-2.0
"""The playbooks, run for real on the hosts of a lab."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from roundabout.core.errors import UsageError
from roundabout.runner.hosts import playbooks
from roundabout.runner.hosts.playbooks import Result, temporary_inventory
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec import load_topology
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.lifecycle.inventory import lab_inventory

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")
ECN = {"settings_document": {"sysctl": {"net.ipv4.tcp_ecn": 1}}}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    name = process_name("test-provision")
    yield Lab.create(load_topology("dumbbell-2x2"), name, verify=False)
    Lab.remove(name)


def on_host(lab: Lab, *command: str) -> str:
    done = subprocess.run(["ssh", "-F", lab.ssh_config(), "s0", *command], capture_output=True, text=True, check=True)
    return done.stdout


def ecn(lab: Lab) -> str:
    return on_host(lab, "cat", "/proc/sys/net/ipv4/tcp_ecn")


def provision(lab: Lab, settings: Any = None) -> Result:
    with temporary_inventory(lab_inventory(lab)) as inventory:
        return playbooks.run_playbook("site", [inventory], settings)


class Provisioned(NamedTuple):
    """What was found before the settings were applied, and the results of doing so twice."""

    found: str
    first: Result
    second: Result


@pytest.fixture(scope="module")
def provisioned(lab: Lab) -> Provisioned:
    return Provisioned(ecn(lab), provision(lab, ECN), provision(lab, ECN))


@needs_root
def test_a_second_time_changes_nothing_within_ten_seconds(lab: Lab, provisioned: Provisioned) -> None:
    assert min(provisioned.first.changed.values()) > 0
    prefix = lab.hosts["s0"].prefix
    programs = on_host(lab, "ls", f"{prefix}/bin").split()
    kinds = ("guard", "host", "journal", "linux", "nic", "qos", "undo")
    settings = ["dcbx_to_firmware.py", "settings.py", *(f"settings_{part}.py" for part in kinds)]
    native = ["replay", "replay-rdma", "sampler"]
    others = ["capture.py", "clock.py", "crossgen", "exporter.py", "exporter_metrics.py", "iperf.py", "route_probe.py"]
    parts = ("dlrm", "flows", "networks", "sizes", "tensors", "times")
    started = ["rendezvous_store.py", "torchrun.py", "worker_launcher.py", "worker_protocol.py"]
    training = ["training.py", *(f"training_{part}.py" for part in parts), *started]
    trainers = ["ddp.py", "dlrm.py", "profiler_trace.py", "with_deepspeed.py", "with_horovod.py", *training]
    trainers += ["iteration_lines.py", "run_program.py"]
    assert programs == sorted([*others, *native, *settings, *trainers, "transport"])
    assert provisioned.second.changed == dict.fromkeys(lab.hosts, 0)
    assert provisioned.second.seconds < 10


@needs_root
def test_settings_are_applied_verified_and_rolled_back(lab: Lab, provisioned: Provisioned) -> None:
    assert ecn(lab) == "1\n"
    with temporary_inventory(lab_inventory(lab)) as inventory:
        playbooks.run_playbook("verify", [inventory], ECN)
        on_host(lab, "sh", "-c", "'echo 0 > /proc/sys/net/ipv4/tcp_ecn'")
        with pytest.raises(playbooks.ProvisionError) as error:
            playbooks.run_playbook("verify", [inventory], ECN)
        assert "settings that differ: sysctl net.ipv4.tcp_ecn" in str(error.value.hint)
        assert min(playbooks.run_playbook("rollback", [inventory]).changed.values()) == 1
        assert ecn(lab) == provisioned.found
        assert not any(playbooks.run_playbook("rollback", [inventory]).changed.values())


@pytest.mark.proof
@needs_root
def test_verify_names_a_program_that_differs_and_site_mends_it(lab: Lab) -> None:
    provision(lab)
    on_host(lab, "sh", "-c", f"'echo >> {lab.hosts['s0'].prefix}/bin/clock.py'")
    with temporary_inventory(lab_inventory(lab)) as inventory:
        with pytest.raises(playbooks.ProvisionError) as error:
            playbooks.run_playbook("verify", [inventory])
        assert "programs that differ: clock.py" in str(error.value.hint)
        assert playbooks.run_playbook("site", [inventory]).changed["s1"] == 0
        playbooks.run_playbook("verify", [inventory])


def test_an_inventory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"inventory .*/none.yml does not exist"):
        playbooks.run_playbook("site", [tmp_path / "none.yml"])


def test_a_host_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.json"
    options = "-o ProxyCommand=false -o BatchMode=yes"
    host = {"ansible_ssh_common_args": options, "roundabout_prefix": "/nowhere", "roundabout_state": "/nowhere"}
    inventory.write_text(json.dumps({"all": {"children": {"rack": {"hosts": {}}, "lab": {"hosts": {"h9": host}}}}}))
    with pytest.raises(playbooks.ProvisionError) as error:
        playbooks.run_playbook("rollback", [inventory])
    assert "h9" in str(error.value.hint)
    assert "unreachable" in str(error.value.hint)
