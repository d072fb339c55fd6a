# SPDX-License-Identifier: Apache-2.0
"""Lab hosts that pose as a rack: their inventory, and runs in processes of their own (rack_process.py)."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roundabout.core.paths import ROOT
from roundabout.runner.hosts.host_group import Host
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.network.layout import route_table

INVENTORY = """
all:
  vars:
    ssh_config: {config}
    emulated: {{by: a lab's hosts, scale: {scale}}}
    {fields}
  children:
    rack:
      vars: {{driver: inbox, gpu: none, mtu_bytes: 1500, roundabout_prefix: {prefix}, roundabout_state: {state}}}
      hosts:
        {hosts}
    switches:
      vars:
        system: sonic
        ecn: {{cell_bytes: 80, Kmin_cells: 10, Kmax_cells: 20, Pmax_percent: 100}}
        cable_length_m: 5
      hosts:
        {switches}
"""


def inventory_of(lab: Lab, fields: Mapping[str, float], ports: Mapping[str, Mapping[str, str]]) -> str:
    """An inventory of a lab's hosts, with further `fields`, and the switches' ports by the host or link behind them."""
    hosts = (f"{host.name}: {json.dumps(server_of(lab, host))}" for host in lab.hosts.values())
    switches = (f"{name}: {{ansible_host: {name}, ports: {json.dumps(each)}}}" for name, each in ports.items())
    return INVENTORY.format(
        config=lab.ssh_config(),
        scale=lab.scale,
        fields="\n    ".join(f"{name}: {value}" for name, value in fields.items()),
        prefix=lab.hosts["s0"].prefix,
        state=lab.settings_state,
        hosts="\n        ".join(hosts),
        switches="\n        ".join(switches),
    )


def server_of(lab: Lab, host: Host) -> dict[str, Any]:
    """Return the inventory's server of a lab host. Packets from NICs behind its first have routing tables of their own.

    A link to a host with one NIC has the host's name.
    """
    links = [link.name for link in lab.topology.links_of(host.name)]
    nics: list[dict[str, Any]] = [
        {"nic": nic.interface, "address": f"{nic.address}/{host.prefix_length}", "link": link}
        | ({"table": route_table(number)} if number else {})
        for number, (nic, link) in enumerate(zip(host.nics, links, strict=True))
    ]
    if len(nics) == 1:
        return {"ansible_host": host.ssh_alias, **nics[0], "link": host.name}
    return {"ansible_host": host.ssh_alias, "nics": nics}


@contextmanager
def driven(action: str, inventory: Path, folder: Path, *more: object) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own."""
    words = [sys.executable, "-m", "tests.rack.lab_hosts.rack_process", action, inventory, folder, *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(list(map(str, words)), cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
