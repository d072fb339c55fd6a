# SPDX-License-Identifier: Apache-2.0
"""Leases on a rack's hosts, switches and links, which several users share.

Leases are locks on files of one machine, which every user's inventory names. Only root can open the files. A program on
that machine, the holder, keeps the locks while it receives messages from the owner. The locks end with the owner's
connection or after a time without messages. The holder answers each message, so that the owner has the lease's state.

The owner may be stopped or disconnected while its programs on hosts continue. Therefore each host has a guard. After
each answer of the holder, the owner sends the guards the least remaining time of the lease. When this time has passed,
the guard breaks the host's connection.
"""

from collections.abc import Iterable

from roundabout.testbeds.rack.examination import HOST_PROGRAMS
from roundabout.testbeds.rack.inventory import Inventory

HEARTBEAT_S = 5
SILENCE_S = 60

HOLDER = (HOST_PROGRAMS / "lease_holder.py").read_text()
GUARD = (HOST_PROGRAMS / "lease_guard.py").read_text()


def lease_names(inventory: Inventory, hosts: Iterable[str], links: Iterable[str], switches: Iterable[str]) -> list[str]:
    """Return the names of the leases for these hosts, links and switches.

    The names consist of machines and ports, because inventories of different users may name hosts differently.
    """
    servers = [f"host {inventory.servers[host].ansible_host}" for host in hosts]
    machines = {f"switch {inventory.machine_of(switch)}" for switch in switches}
    ports = [
        f"port {inventory.machine_of(name)} {switch.ports[link]}"
        for link in links
        for name, switch in inventory.switches.items()
        if link in switch.ports
    ]
    return [name.replace("/", "_") for name in (*servers, *sorted(machines), *ports)]
