# SPDX-License-Identifier: Apache-2.0
"""Lab hosts that pose as a rack: their inventory, and runs in processes of their own (rack_process.py)."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from roundabout.core.paths import ROOT
from roundabout.testbeds.lab import Lab

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
    hosts = (
        f"{host.name}: {{ansible_host: {host.ssh_alias}, nic: {host.interface}, "
        f"address: {host.address}/{host.prefix_length}, link: {host.name}}}"
        for host in lab.hosts.values()
    )
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
