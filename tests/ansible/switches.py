# SPDX-License-Identifier: Apache-2.0
"""A switch of each system in an inventory, the command of a fake one, and the golden texts that it gets."""

import sys
from pathlib import Path
from typing import Any

from roundabout.testbeds.rack.inventory import read_inventory
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
OF_ECN = {"junos": ", queue_cells: 20000", "sonic": "", "tofino": ", pfc_skid_cells: 4000"}
OF_SYSTEM = {"junos": "\n        pfc_watchdog: true", "sonic": "\n        cable_length_m: 5", "tofino": ""}
TRIED = {
    "junos": "{platform: qfx5120-48y, release: 21.4R3-S5.4}",
    "sonic": "{platform: x86_64-mlnx_msn2700-r0, release: 202311.553318-0a1b2c3d4}",
    "tofino": "{platform: tofino1, release: 9.13.4-404}",
}
PORTS = {
    "junos": ("et-0/0/0", "et-0/0/1"), "sonic": ("Ethernet0", "Ethernet4"), "tofino": ("1/0", "1/1")
}  # fmt: skip
PLAN = "(as in the file plan)\n"


def facts(system: str, folder: Path, more: str = "") -> dict[str, Any]:
    path = folder / "inventory"
    text = INVENTORY.replace("OF_ECN", OF_ECN[system]).replace("OF_SYSTEM", more or OF_SYSTEM[system])
    text = text.replace("SYSTEM", system).replace("TRIED", TRIED[system])
    for number, port in enumerate(PORTS[system]):
        text = text.replace(f"PORT{number}", port)
    path.write_text(text)
    return switch_variables(read_inventory(path), "tor")


def golden_text(system: str, action: str) -> str:
    """Return the complete text of a golden file."""
    return (GOLDEN / system / action).read_text().replace(PLAN, (GOLDEN / system / "plan").read_text())
