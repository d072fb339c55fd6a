# SPDX-License-Identifier: Apache-2.0
"""A switch of each system in an inventory, the command of a fake one, and the golden texts that it gets."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.hosts.playbooks import Playbook, ProvisionError, Result, run_playbook
from roundabout.testbeds.rack.inventory import Inventory, read_inventory
from roundabout.testbeds.rack.variables import switch_variables

FAKE = [sys.executable, "-S", str(Path(__file__).with_name("fake_switches") / "switch.py")]
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
        ecn: {cell_bytes: 80, Kmin_cells: 1000, Kmax_cells: 2000, Pmax_percent: 100OF_ECN}OF_SYSTEM
      hosts:
        tor: {ansible_host: sw, ports: {s0: PORT0, s1: PORT1}, apply_on: TRIED}
"""
SYSTEMS = ("junos", "sonic", "tofino")
TIMED = ("cumulus", "eos")  # their undo is a timed commit of NVUE, or of a configuration session
COMPARED = ("dell", "nxos")  # are never changed
OF_ECN = dict.fromkeys((*TIMED, *COMPARED), "") | {
    "junos": ", queue_cells: 20000",
    "sonic": "",
    "tofino": ", pfc_skid_cells: 4000",
}
OF_SYSTEM = dict.fromkeys((*TIMED, *COMPARED), "") | {
    "junos": "\n        pfc_watchdog: true",
    "sonic": "\n        cable_length_m: 5",
    "tofino": "",
}
TRIED = dict.fromkeys(COMPARED, "null") | {
    "cumulus": "{platform: MSN2700, release: 5.11.0}",
    "eos": "{platform: DCS-7060CX-32S, release: 4.30.0F-31408673.4300F}",
    "junos": "{platform: qfx5120-48y, release: 21.4R3-S5.4}",
    "sonic": "{platform: x86_64-mlnx_msn2700-r0, release: 202311.553318-0a1b2c3d4}",
    "tofino": "{platform: tofino1, release: 9.13.4-404}",
}
PORTS = {
    "cumulus": ("swp1", "swp2"), "dell": ("Eth1/1", "Eth1/2"), "eos": ("Ethernet1", "Ethernet2"),
    "nxos": ("Ethernet1/1", "Ethernet1/2"), "junos": ("et-0/0/0", "et-0/0/1"),
    "sonic": ("Ethernet0", "Ethernet4"), "tofino": ("1/0", "1/1"),
}  # fmt: skip
PLAN = "(as in the file plan)\n"


def facts(system: str, folder: Path, more: str = "") -> dict[str, Any]:
    """Return the variables of the switch `tor` with this system."""
    return switch_variables(write_inventory(system, folder, more), "tor")


def write_inventory(system: str, folder: Path, more: str = "", tried: str = "") -> Inventory:
    """Write an inventory whose switch has this system, and return it."""
    path = folder / "inventory"
    text = INVENTORY.replace("OF_ECN", OF_ECN[system]).replace("OF_SYSTEM", more or OF_SYSTEM[system])
    text = text.replace("SYSTEM", system).replace("TRIED", tried or TRIED[system])
    for number, port in enumerate(PORTS[system]):
        text = text.replace(f"PORT{number}", port)
    path.write_text(text)
    return read_inventory(path)


def golden_text(system: str, action: str) -> str:
    """Return the complete text of a golden file."""
    return (GOLDEN / system / action).read_text().replace(PLAN, (GOLDEN / system / "plan").read_text())


class Switches:
    """A fake switch of each system, with whatever Roundabout made of it."""

    def __init__(self, folder: Path, systems: Sequence[str]) -> None:
        self.folder, self.systems = folder, systems
        self.hosts = {system: facts(system, folder) for system in systems}
        for system in systems:
            self.hosts[system]["switches_ssh"] = [*FAKE, str(folder / "now" / system)]
        self.wait(0)
        self.keep("found")

    def play(self, name: Playbook, **options: Any) -> dict[str, int]:
        """How often each switch was changed."""
        return self.run(name, **options).changed

    def run(self, name: Playbook, **options: Any) -> Result:
        """Return the result of a playbook."""
        inventory = self.folder / "hosts.json"
        groups = {"rack": {"hosts": {}}, "switches": {"hosts": self.hosts}}
        inventory.write_text(json.dumps({"all": {"children": groups}}))
        return run_playbook(name, [inventory], **options)

    def complaints(self, name: Playbook, **options: Any) -> str:
        """What a playbook fails with, in one line."""
        with pytest.raises(ProvisionError) as error:
            self.play(name, **options)
        return " ".join(str(error.value.hint).split())

    def wait(self, minutes: int) -> None:
        """Time passes, for the switches."""
        for system in self.systems:
            subprocess.run([*FAKE, self.folder / "now" / system, "--minutes", str(minutes)], check=True)

    def keep(self, name: str) -> None:
        """All switches, to be restored by this name."""
        shutil.copytree(self.folder / "now", self.folder / name)

    def restore(self, name: str) -> None:
        shutil.rmtree(self.folder / "now")
        shutil.copytree(self.folder / name, self.folder / "now")

    def state(self, system: str, name: str = "now") -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.folder / name / system / "switch.json").read_text())
        return state

    def running(self, name: str = "now") -> dict[str, Any]:
        """What is in force; Junos' statements by name, as their order is the switch's affair."""
        found = {system: self.state(system, name)["running"] for system in self.systems}
        return found | ({"junos": sorted(found["junos"])} if "junos" in found else {})

    def become(self, system: str, **state: Any) -> None:
        (self.folder / "now" / system / "switch.json").write_text(json.dumps(self.state(system) | state))

    def files(self) -> list[str]:
        """What Roundabout keeps on the switches."""
        return sorted(path.name for path in (self.folder / "now").rglob("*roundabout*"))
