# SPDX-License-Identifier: Apache-2.0
"""The environment of trainers that use NCCL, and a parser of the settings in NCCL's log.

The formats of log lines are from NVIDIA/nccl 2.7.8, 2.11.4 and 2.30.7 (src/init.cc, src/transport/net.cc,
src/transport/net_socket.cc; src/transport/net_ib.cc, later net_ib/init.cc and connect.cc), and from users' logs
(NVIDIA/nccl issues 676, 1052). This project ran NCCL 2.28.9 over sockets, never over RDMA
(experiments/records/ddp-lab-nccl/nccl.log).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from ipaddress import IPv4Address

from roundabout.runner.hosts.host_group import Host

ECT0 = 2  # ECN bits of a ToS byte, so that switches mark packets and do not drop them
LOG = "/dev/stderr"
# Command prefix that puts a pipe before stderr. NCCL opens the file LOG by name, which fails if sshd passes a socket.
LOGGED = ("bash", "-c", 'exec "$@" 2> >(exec cat >&2)', "bash")

INFO = re.compile(r"NCCL INFO (.*)")
VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
NETWORK = re.compile(r"Using network (\w+)")
SOCKET = re.compile(r"NET/Socket : Using(( \[\d+\]\S+)+)")
DEVICES = re.compile(r"NET/IB : Using(( \[\d+\]\S+)+).*; OOB ([^:\s]+):")
NUMBERED = re.compile(r"\[\d+\]([^\s<]+)")
CHANNEL = re.compile(r"Channel \d+.*\[(?:send|receive)\] via (NET/\w+)/")
GID = re.compile(r"NET/IB: .*\bGID (\d+) \(([0-9A-F]+)/([0-9A-F]+)\)")
APPLIED = re.compile(r"(NCCL_IB_TC|NCCL_ALGO) set by environment to ([\w,;:^]+)")


def environment(host: Host, dscp: int, *, rdma: bool) -> dict[str, str]:
    """Return NCCL's environment variables for a worker on `host`. NCCL sends packets with `dscp`.

    NCCL uses RDMA if `rdma`, else sockets, by all NICs of the host. With RDMA its sockets are of the first NIC.
    """
    debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV", "NCCL_DEBUG_FILE": LOG}
    interfaces = [nic.interface for nic in host.nics]
    reported = {"NCCL_SOCKET_IFNAME": f"={','.join(interfaces[:1] if rdma else interfaces)}"}
    if rdma:
        reported |= {"NCCL_NET": "IB", "NCCL_IB_HCA": f"={host.nccl.hca}", "NCCL_IB_TC": str(dscp << 2 | ECT0)}
        reported |= {} if host.nccl.gid_index is None else {"NCCL_IB_GID_INDEX": str(host.nccl.gid_index)}
    else:
        reported |= {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1"}
    return {**reported, **({"NCCL_ALGO": host.nccl.algorithm} if host.nccl.algorithm else {}), **debug}


def command_prefix(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command prefix that sets a worker's `environment` and connects NCCL's log to stderr."""
    return ("env", *(f"{name}={value}" for name, value in environment.items()), *LOGGED)


@dataclass(frozen=True)
class NcclReport:
    """The devices and settings in the NCCL log of one worker. A field is empty if the log lacks it."""

    version: tuple[str, ...] = ()
    network: tuple[str, ...] = ()  # IB, Socket, or a plugin's name
    interfaces: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()  # RDMA devices with ports, such as mlx5_0:1
    links: tuple[str, ...] = ()  # link types of devices: RoCE or IB
    channels: tuple[str, ...] = ()  # types of channels to other hosts: NET/IB or NET/Socket
    gid_indices: tuple[str, ...] = ()
    gid_addresses: tuple[str, ...] = ()  # IPv4 addresses, or the log's text for other GIDs
    traffic_class: tuple[str, ...] = ()
    algorithm: tuple[str, ...] = ()


def parse_log(log: str) -> NcclReport:
    """Parse the NCCL lines of a worker's log. Values in the report are unique and sorted."""
    found: dict[str, set[str]] = {field.name: set() for field in fields(NcclReport)}
    found["version"] |= {*VERSION.findall(log)}
    for line in INFO.findall(log):
        _read(line, found)
    return NcclReport(**{name: tuple(sorted(values)) for name, values in found.items()})


def _read(line: str, found: Mapping[str, set[str]]) -> None:
    if match := NETWORK.match(line):
        found["network"].add(match[1])
    elif match := SOCKET.match(line):
        found["interfaces"].update(name.partition(":")[0] for name in NUMBERED.findall(match[1]))
    elif match := DEVICES.match(line):
        for device, _, link in (name.rpartition("/") for name in NUMBERED.findall(match[1])):
            found["devices"].add(":".join(device.split(":")[:2]))  # since 2.30 a rail and a plane may follow
            found["links"].add(link)
        found["interfaces"].add(match[3])
    elif match := CHANNEL.match(line):
        found["channels"].add(match[1])
    elif match := GID.match(line):
        found["gid_indices"].add(match[1])
        found["gid_addresses"].add(_address(match[2], match[3]))
    elif match := APPLIED.match(line):
        found["traffic_class" if match[1] == "NCCL_IB_TC" else "algorithm"].add(match[2])


def _address(prefix: str, identifier: str) -> str:
    """Return the IPv4 address in a GID, whose halves are printed as numbers of a little-endian machine."""
    halves = (int(half, 16) for half in (prefix, identifier))
    try:
        octets = b"".join(half.to_bytes(8, "little") for half in halves)
    except OverflowError:
        octets = b""
    mapped = octets[:12] == bytes(10) + b"\xff\xff"
    return str(IPv4Address(octets[12:])) if mapped else f"{prefix}/{identifier}"


def find_differences(requested: Mapping[str, str], addresses: Sequence[str], found: NcclReport) -> list[str]:
    """Return a line for each difference between the environment `requested` and NCCL's report `found`.

    `addresses` are the IPv4 addresses of the NICs of the worker's host. A worker may use only some of them.
    """
    network = requested["NCCL_NET"]
    expected = {
        "network": network,
        "interfaces": requested["NCCL_SOCKET_IFNAME"].removeprefix("="),
        "channels": f"NET/{network}",
        "algorithm": requested.get("NCCL_ALGO"),
    }
    if network == "IB":
        expected |= {
            "devices": requested["NCCL_IB_HCA"].removeprefix("="),
            "links": "RoCE",
            "gid_addresses": ",".join(each for each in found.gid_addresses if each in addresses) or addresses[0],
            "gid_indices": requested.get("NCCL_IB_GID_INDEX"),
            "traffic_class": requested["NCCL_IB_TC"],
        }
    reported = [(name, getattr(found, name), wanted) for name, wanted in expected.items() if wanted is not None]
    return [
        f"{name.replace('_', ' ')}: found {', '.join(values) or 'none in its log'}, expected {wanted}"
        for name, values, wanted in reported
        if set(values) != set(wanted.split(","))
    ]
