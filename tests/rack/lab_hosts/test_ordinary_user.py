# SPDX-License-Identifier: Apache-2.0
"""Runs of an ordinary user: no root on this machine, none on the rack's hosts."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec import load_topology
from roundabout.store import Run
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.rack.provider import RackProvider
from tests.rack.lab_hosts.ordinary_user import UID, USER, Account, account
from tests.rack.lab_hosts.rack_runs import inventory_of

pytestmark = [
    pytest.mark.lab,
    pytest.mark.quiet,
    pytest.mark.proof,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root"),
]

TOPOLOGY = "configuration-a"
FIELDS = {"line_rate_gbps": 25, "payload_rate_gbps": 23.5}
PORTS = {"tor": {"s0": "Ethernet0", "s1": "Ethernet4", "s2": "Ethernet8", "s3": "Ethernet12"}}
COMMAND = f"""
[ "$(id -un)" = {USER} ] || exit 7
for each in $(seq $ITERATIONS); do sleep 0.05; echo step $each took 50 ms; done
"""
TRAINER = {"name": "program", "command": COMMAND, "pattern": r"took (?P<ms>\S+) ms"}
EXPERIMENT = {
    "schema": 1, "name": "ordinary", "about": "A program beside a replayed job", "topology": TOPOLOGY,
    "profile": "resnet50-1600", "transport": {"name": "reno"}, "iterations": 3,
    "jobs": {"j1": {"workers": ["s0", "s2"], "trainer": TRAINER}, "j2": {"workers": ["s1", "s3"]}},
}  # fmt: skip
DIFFERENCE = re.compile(r"sysctl (net\.\S+) is [^,;]*, expected ([a-z]+|[0-9 ]*[0-9])")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    name = process_name("test-ordinary")
    yield Lab.create(load_topology(TOPOLOGY), name, verify=False)
    Lab.remove(name)


@pytest.fixture(scope="module")
def user(lab: Lab) -> Iterator[Account]:
    """The user, with an inventory, and with programs copied to the hosts as this user."""
    with account(lab) as made:
        text = inventory_of(lab, FIELDS, PORTS).replace(str(lab.ssh_config()), str(made.ssh_config))
        text = text.replace(str(lab.hosts["s0"].prefix), f"/tmp/{USER}/roundabout")
        inventory = made.home / "inventory"
        inventory.write_text(text.replace("gpu: none,", f"gpu: none, ansible_user: {USER}, ansible_become: false,"))
        (made.home / "ordinary.yaml").write_text(json.dumps(EXPERIMENT))
        provider = RackProvider(inventory)  # the checkout is root's, so that no other user can pack its programs
        provider.provision(provider.create_hosts(load_topology(TOPOLOGY), "copied"))
        provider.undo({"kind": "testbed", "name": "copied"})
        yield made


def test_a_run_names_the_settings_that_need_root_and_works_once_they_are_set(lab: Lab, user: Account) -> None:
    refused = user.run("run", "ordinary.yaml", "--inventory", "inventory")
    assert refused.returncode == 1, refused.stderr
    assert "settings differ from the experiment's, and changing them needs root: s0: sysctl net.ipv4" in refused.stderr
    for name, value in set(DIFFERENCE.findall(" ".join(refused.stderr.split()))):
        for host in lab.hosts:
            subprocess.run(["ssh", "-F", lab.ssh_config(), host, f"sysctl -qw {name}='{value}'"], check=True)
    done = user.run("run", "ordinary.yaml", "--inventory", "inventory")
    assert done.returncode == 0, done.stderr
    run = Run.open("last", user.home / "runs")
    rows = run.table("iterations", valid_only=False).to_pylist()
    assert {job: sum(row["job"] == job for row in rows) for job in ("j1", "j2")} == {"j1": 3, "j2": 6}
    assert run.table("counters", valid_only=False).num_rows
    assert not list(Path("/tmp").glob(f"rb-{UID}*"))  # no lease
    assert not list(user.home.glob(".local/state/roundabout/*"))  # no journal


def test_an_administrators_commands_are_refused(user: Account) -> None:
    for command in ("provision", "verify", "rollback"):
        refused = user.run(command, "inventory")
        assert refused.returncode == 2
        assert (
            "ansible_become: found false, allowed for `provision`, `verify`, `acceptance` and `rollback` is"
            in refused.stderr
        )


def test_doctor_names_what_an_ordinary_user_does_without(user: Account) -> None:
    shown = user.run("doctor", "inventory").stdout
    assert re.search(rf"^- +ordinary user +{USER}, by ansible_become: false", shown, re.MULTILINE)
    assert not re.search(r"^MISSING +(?:root|apt-get|systemctl|DCQCN)", shown, re.MULTILINE)
