# SPDX-License-Identifier: Apache-2.0
"""What switches are told, word by word. ROUNDABOUT_GOLDEN=1 renews the golden files: read the difference."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.variables import switch_variables

TEMPLATES = Path(__file__).parents[2] / "ansible/roles/switches/templates"
GOLDEN = Path(__file__).with_name("golden")
INVENTORY = """
all:
  vars: {line_rate_gbps: 50, payload_rate_gbps: 43}
  children:
    rack:
      vars: {driver: ofed, mtu_bytes: 4200}
      hosts:
        s0: {ansible_host: a, nic: eth2, address: 10.0.0.1/24, link: s0}
        s1: {ansible_host: b, nic: eth2, address: 10.0.0.2/24, link: s1}
    switches:
      vars:
        system: SYSTEM
        ecn: {cell_bytes: 80, Kmin_cells: 1000, Kmax_cells: 2000, Pmax_percent: 100, pfc_skid_cells: 4000,
              queue_cells: 20000}
      hosts:
        tor: {ansible_host: sw, ports: {s0: PORT0, s1: PORT1}}
"""
PORTS = {
    "junos": ("et-0/0/0", "et-0/0/1"), "sonic": ("Ethernet0", "Ethernet4"), "tofino": ("1/0", "1/1")
}  # fmt: skip


def facts(system: str, folder: Path) -> dict[str, Any]:
    path = folder / "inventory"
    text = INVENTORY.replace("SYSTEM", system)
    for number, port in enumerate(PORTS[system]):
        text = text.replace(f"PORT{number}", port)
    path.write_text(text)
    return switch_variables(read_inventory(path), "tor")


RENDER = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - copy:
        content: "{{ lookup('template', inventory_hostname ~ '/' ~ item ~ '.j2') }}"
        dest: "{{ rendered }}/{{ inventory_hostname }}/{{ item }}"
      loop: [compare, apply, confirm, rollback]
"""


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is said to each kind of switch, rendered by Ansible itself."""
    folder = tmp_path_factory.mktemp("rendered")
    hosts = {system: facts(system, folder) for system in PORTS}
    for system in PORTS:
        (folder / system).mkdir()
    (folder / "templates").symlink_to(TEMPLATES)
    (folder / "hosts.json").write_text(json.dumps({"all": {"vars": {"rendered": str(folder)}, "hosts": hosts}}))
    (folder / "play.yml").write_text(RENDER)
    command = [Path(sys.executable).with_name("ansible-playbook"), "-i", "hosts.json", "play.yml"]
    config = TEMPLATES.parents[2] / "ansible.cfg"
    environment = os.environ | {"LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(config)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("system", PORTS)
@pytest.mark.parametrize("action", ["compare", "apply", "confirm", "rollback"])
def test_the_words_are_those_that_were_read(rendered: Path, system: str, action: str) -> None:
    said = (rendered / system / action).read_text()
    golden = GOLDEN / system / action
    if os.environ.get("ROUNDABOUT_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(said)
    assert said == golden.read_text()
