# SPDX-License-Identifier: Apache-2.0
"""Readers of the queues of an inventory's switches."""

from collections.abc import Collection, Mapping

from roundabout.runner.hosts.host_group import PortPlace, QueueReader
from roundabout.testbeds.rack.inventory import Inventory
from roundabout.testbeds.rack.switch_counters import cumulus, eos, sonic

SYSTEMS = {"cumulus": cumulus.queue_reader, "eos": eos.queue_reader, "sonic": sonic.queue_reader}
CONNECT_TIMEOUT_S = 10


def queue_readers(
    inventory: Inventory, switches: Collection[str], links: Collection[str]
) -> Mapping[str, QueueReader | str]:
    """Return the readers of the queues of `switches` on ports of `links`, or the reason why there is none."""
    return {switch: _queue_reader(inventory, switch, links) for switch in switches}


def _queue_reader(inventory: Inventory, switch: str, links: Collection[str]) -> QueueReader | str:
    system = inventory.system_of(switch)
    if system == "unmanaged":
        return "unmanaged, so that it is not contacted"
    if system not in SYSTEMS:
        return f"found {system}; Roundabout reads queues of {', '.join(sorted(SYSTEMS))}"
    ports = {
        port: PortPlace(link, next(end for end in inventory.ends[link] if end != switch))
        for link, port in inventory.switches[switch].ports.items()
        if link in links
    }
    options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}", "-l", inventory.user_of(switch))
    ssh = ("ssh", "-F", str(inventory.ssh_config), *options, inventory.machine_of(switch))
    return SYSTEMS[system](ssh, ports)
