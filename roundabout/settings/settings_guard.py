# SPDX-License-Identifier: Apache-2.0
"""Refusal of changes that would interrupt a link in use: SSH, the default route, a file system, or RDMA programs."""

from __future__ import annotations

import os
import re
from typing import Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from roundabout.settings.settings_host import Host, SettingsError, ToolError
from roundabout.settings.settings_journal import Key
from roundabout.settings.settings_linux import PAUSE, default_devices, devices_to

# Settings whose change takes the link down, or drops packets: mlx5 closes its queues for an MTU, and toggles the port
# for PFC (en_main.c, mlx5e_change_mtu; en_dcbnl.c, mlx5_toggle_port_link).
INTERRUPTING = {"link": {"mtu", "speed_mbps", "autoneg", *PAUSE}, "qos": {"pfc"}}
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "fuse.glusterfs"}
# Addresses of servers in /proc/mounts: IPv4 anywhere, and IPv6 as NFS and CIFS show it.
ADDRESS = re.compile(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b|(?<=addr=)[0-9a-f]*:[0-9a-f:]+")
OWN_NIC = "`nic` in the inventory must be a NIC of its own for data; for guests and labs with one NIC: shared_nic: true"


class Client(NamedTuple):
    """The two ends of the SSH connection by which this program was started."""

    address: str
    own_address: str


def refuse_links_in_use(host: Host, changes: Iterable[Key]) -> None:
    """Raise SettingsError if one of `changes` would interrupt a link in use. The message names its uses.

    `shared_nic` of the host permits all uses but open queue pairs.
    """
    for nic in sorted({target for kind, target, name in changes if name in INTERRUPTING.get(kind, ())}):
        uses = [] if host.shared_nic else list(uses_of(host, nic))
        if uses:
            raise SettingsError(f"{nic} must not be changed: it carries {'; '.join(uses)}", OWN_NIC)
        programs = programs_with_queue_pairs(host, nic)
        if programs:
            raise SettingsError(
                f"{nic} must not be changed: its RDMA device has open queue pairs of {', '.join(programs)}",
                "wait for these programs, or end them; to list them: rdma resource show qp",
            )


def uses_of(host: Host, nic: str) -> Iterator[str]:
    """Yield what a NIC carries apart from data, in words."""
    master = host.root / "sys/class/net" / nic / "master"
    if master.exists():
        yield f"{os.path.basename(os.path.realpath(master))}, of which it is a port"
    client = ssh_client(host)
    if client and nic in _with_lower(host, devices_to(host, *client)):
        yield f"this SSH connection from {client.address}"
    if nic in _with_lower(host, default_devices(host)):
        yield "the default route"
    for folder, servers in _network_mounts(host):
        if any(nic in _with_lower(host, devices_to(host, server)) for server in servers):
            yield f"the file system {folder}"


def ssh_client(host: Host) -> Optional[Client]:
    """Return the ends of the SSH connection of this process or of an ancestor, because sudo clears its environment."""
    pid = os.getpid()
    while pid > 0:
        process = host.root / "proc" / str(pid)
        try:
            variables = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            status = (process / "status").read_text()
        except OSError:
            return None
        for variable in variables:
            name, _, words = variable.partition("=")
            if name == "SSH_CONNECTION" and len(words.split()) == 4:
                address, _, own_address, _ = words.split()
                return Client(address, own_address)
        parent = re.search(r"^PPid:\s*([0-9]+)", status, re.MULTILINE)
        pid = int(parent.group(1)) if parent else 0
    return None


def _with_lower(host: Host, devices: Iterable[str]) -> Set[str]:
    """Return interfaces, and those below them: ports of a bond or bridge, and the NIC of a VLAN."""
    found: Set[str] = set()
    for device in devices:
        below = (host.root / "sys/class/net" / device).glob("lower_*")
        found |= {device} | _with_lower(host, [link.name[len("lower_") :] for link in below])
    return found


def _network_mounts(host: Host) -> Iterator[Tuple[str, List[str]]]:
    """Yield the folder of each mounted network file system, and the addresses that its mount shows."""
    mounts = host.root / "proc/mounts"
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        source, folder, kind, options, *_ = line.split()
        if kind in NETWORK_FILE_SYSTEMS:
            yield folder, ADDRESS.findall(f"{source} {options}")


def programs_with_queue_pairs(host: Host, nic: str) -> List[str]:
    """Return the programs with open queue pairs on a NIC's RDMA devices, with their process ids.

    Queue pairs of the kernel have no process. Without the tool `rdma`, or without RDMA in the kernel, there are none.
    """
    if not host.has("rdma"):
        return []
    try:
        links = host.run("rdma", "link").splitlines()
    except ToolError:  # the module ib_core is not loaded
        return []
    devices = {_word(line, "link").partition("/")[0] for line in links if _word(line, "netdev") == nic}
    pairs = host.run("rdma", "resource", "show", "qp").splitlines() if devices else []
    return sorted(
        {
            f"{_word(line, 'comm')} (process {_word(line, 'pid')})"
            for line in pairs
            if _word(line, "link").partition("/")[0] in devices and _word(line, "pid") not in ("", "0")
        }
    )


def _word(line: str, name: str) -> str:
    """Return the word after `name`; empty if there is none."""
    words = line.split()
    return words[words.index(name) + 1] if name in words[:-1] else ""
