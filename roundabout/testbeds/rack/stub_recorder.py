# SPDX-License-Identifier: Apache-2.0
"""Recorder of raw answers of a rack's machines, from which tests make a fake rack.

The recording has only the listed items: files of sysfs, procfs and debugfs that doctor and settings read, and output of
tools. It has no other files of the site, no keys, no list of processes, and no register or page with a serial number.
Identifiers are replaced consistently: IPv4 addresses (by 198.18.0.0/15), MACs, GIDs, serial numbers in NVIDIA's form,
GPUs' UUIDs, and all hexadecimal numbers of 12 digits or more. PCI addresses, names of interfaces and boards (PSID), and
versions stay.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.settings.settings_nic import OBEYING, RTTCC_QUERIES, RTTCC_SLOT
from roundabout.testbeds.rack.examination import (
    HOST_PROGRAMS,
    PYTHON_38,
    Finding,
    run_over_ssh,
    script_arguments,
)
from roundabout.testbeds.rack.inventory import HostNic, Inventory

SCHEMA = 1
RECORD_TIMEOUT_S = 180  # time limit of a host; mlxconfig and lost pings take seconds
# Files that are recorded with their content. Those in EXISTENCE_ONLY are only recorded as readable or not. {nic},
# {rdma} and {bdf} stand for names of the NIC.
FILES = (
    "etc/os-release",
    "sys/class/net/{nic}/uevent",
    "sys/class/net/{nic}/device/device",
    "sys/class/net/{nic}/device/vendor",
    "sys/class/net/{nic}/carrier_changes",
    "sys/class/net/{nic}/device/numa_node",
    "sys/class/net/{nic}/device/local_cpulist",
    "sys/class/net/{nic}/device/current_link_*",
    "sys/class/net/{nic}/device/max_link_*",
    "sys/class/net/{nic}/device/msi_irqs/*",
    "sys/class/net/{nic}/device/infiniband/*",
    "sys/class/net/{nic}/ecn",
    "sys/class/net/{nic}/ecn/roce_*/*",
    "sys/class/net/{nic}/ecn/roce_*/*/*",
    "sys/class/infiniband/*/parent",
    "sys/class/infiniband/{rdma}/fw_ver",
    "sys/class/infiniband/{rdma}/board_id",
    "sys/class/infiniband/{rdma}/ports/1/gids/*",
    "sys/class/infiniband/{rdma}/ports/1/gid_attrs/types/*",
    "sys/class/infiniband/{rdma}/ports/1/gid_attrs/ndevs/*",
    "sys/class/infiniband/{rdma}/tc/1/traffic_class",
    "sys/kernel/debug/mlx5/{bdf}/cc_params",
    "sys/kernel/debug/mlx5/{bdf}/cc_params/*",
    "sys/kernel/config/rdma_cm",
    "sys/kernel/security/lockdown",
    "sys/module/nvidia_peermem",
    "sys/bus/pci/devices/*/vendor",
    "sys/bus/pci/devices/*/class",
    "sys/bus/pci/devices/*/numa_node",
    "sys/bus/pci/devices/*/iommu_group/type",
    "proc/driver/nvidia/version",
    "proc/sys/kernel/osrelease",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "proc/irq/[0-9]*/smp_affinity_list",
)
EXISTENCE_ONLY = (
    "etc/shadow",
    "sys/kernel/btf/vmlinux",
    "sys/class/net/{nic}/bonding",
    "sys/class/net/{nic}/master",
    "sys/class/net/{nic}/device/physfn",
    "var/lib/kubelet/pods/*/containers/nic-configuration-daemon",
    "var/lib/kubelet/pods/*/containers/sriov-network-config-daemon",
)
# Only these processes are recorded, because others are private to the site.
ONLY_IF = {"proc/[0-9]*/comm": ("irqbalance", "doca_pcc", "doca_spcx_cc")}
PROGRAMS = (
    "apt-get",
    "dnf",
    "zypper",
    "tcpdump",
    "iperf3",
    "systemctl",
    "chronyc",
    "ptp4l",
    "ib_write_bw",
    "ofed_info",
    "nvidia-smi",
)
NV_TOOLS = ("mlxconfig", "mstconfig")
REGISTER_TOOLS = ("mlxreg", "mstreg")
# Calls with serial numbers in their output. Only lines with these beginnings are recorded.
ONLY_LINES = {"ethtool -m {nic}": ("Identifier", "Vendor name")}
CALLS = (
    f"python3 -c {shlex.quote(PYTHON_38)}",
    "getconf GNU_LIBC_VERSION",
    "ip -V",
    "ip -4 -o addr show dev {nic}",
    "ip -j -d link show dev {nic}",
    "ethtool {nic}",
    "ethtool -a {nic}",
    "ethtool -i {nic}",
    "ethtool -m {nic}",
    "ethtool --show-fec {nic}",
    "ethtool --get-tunable {nic} pfc-prevention-tout",
    "netplan get ethernets.{nic}.mtu",
    "nmcli -g GENERAL.CON-UUID device show {nic}",
    "nmcli -g 802-3-ethernet.mtu connection show {connection}",
    "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader",
    "mlnx_qos -i {nic} -a",
    "tcpdump -D",
    "dcb app help",
    "dcb ets show dev {nic} prio-tc",
    *(f"dcb -j {subject} show dev {{nic}}" for subject in ("app", "dcbx", "ets", "pfc", "buffer")),
    *(f"{tool} -d {{bdf}} q LLDP_NB_DCBX_P{port} DCBX_WILLING_P{port}" for tool in NV_TOOLS for port in (1, 2)),
    *(f"{tool} -d {{bdf}} -e q {name}" for tool in NV_TOOLS for name in OBEYING),
    *(
        f"{tool} -d {{bdf}} --reg_name PPCC --get --op {query} --indexes {RTTCC_SLOT}"
        for tool in REGISTER_TOOLS
        for query in RTTCC_QUERIES
    ),
)
OF_EACH_BRIDGE = "setpci -s {bridge} ECAP_ACS+6.w"
ROUTE = "ip -N -4 -o route get {other} from {own}"
PING = "ping -q -n -c 1 -W 1 -M do -s {payload} -I {own} {other}"

RECORDER = (HOST_PROGRAMS / "recorder.py").read_text()
AS_ROOT = 'sudo -n true < /dev/null 2> /dev/null && exec sudo -n python3 -IS - "$@"; exec python3 -IS - "$@"'


def record_rack(inventory: Inventory, findings: Mapping[str, list[Finding]]) -> dict[str, Any]:
    """Return recorded files and output of tools of each NIC's server, with the `findings`, by the NIC's name.

    Raises RoundaboutError.
    """
    hosts = {name: _record_server(inventory, name) for name in inventory.nics}
    for name, host in hosts.items():
        host["arguments"] = script_arguments(inventory, inventory.nics[name])
        host["findings"] = [list(each) for each in findings[name]]
    addresses = [each.address for each in inventory.nics.values()]
    return {"schema": SCHEMA, "hosts": mask_identifiers(hosts, addresses)}


def recorder_request(inventory: Inventory, own: HostNic, root: str = "") -> str:
    """Return the argument of RECORDER for a server and one of its NICs, as JSON. `root` replaces / in tests."""
    payload, peers = inventory.common.mtu_bytes - 28, inventory.rail_peers(own)
    names = [{"own": own.address, "other": peer.address} for peer in peers]
    pings = [PING.format(payload=payload, **each) for each in names] + [ROUTE.format(**each) for each in names[:1]]
    requested = {"files": FILES, "only_there": EXISTENCE_ONLY, "only_if": ONLY_IF, "programs": PROGRAMS}
    requested["of_each_bridge"] = OF_EACH_BRIDGE
    requested["only_lines"] = ONLY_LINES
    return json.dumps({**requested, "calls": [*CALLS, *pings], "nic": own.nic.nic, "root": root})


def _record_server(inventory: Inventory, name: str) -> dict[str, Any]:
    own = inventory.nics[name]
    words = ["sh", "-c", AS_ROOT, "sh", recorder_request(inventory, own)]
    try:
        said = run_over_ssh(inventory, inventory.servers[own.host], words, RECORDER, RECORD_TIMEOUT_S)
    except RoundaboutError as error:
        raise RoundaboutError(f"{name}: cannot be recorded: {error.message}", f"python3, and {error.hint}") from error
    try:
        found: dict[str, Any] = json.loads(said.splitlines()[-1])  # before it a login's banner
    except (ValueError, IndexError) as error:
        raise RoundaboutError(f"{name}: cannot be recorded: found {said.strip()[-200:]!r}, expected JSON") from error
    return found


# --- What identifies machines


def mask_identifiers(value: Any, addresses: Sequence[str] = ()) -> Any:
    """Return `value` with all identifiers of machines replaced consistently, including those in keys.

    `addresses` get the first replacements.
    """
    names: dict[str, str] = {}
    for address in addresses:
        _ipv4(address, names)
    return _each(value, lambda text: _mask_text(text, names))


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _each(content, change) for key, content in value.items()}
    return [_each(content, change) for content in value] if isinstance(value, list) else value


IPV4 = re.compile(
    r"(?<![\w.])(?<!\d-)(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)"
)  # does not match versions such as 5.8-1.1.2.1
GID = re.compile(r"\b(?:[0-9a-f]{4}:){7}[0-9a-f]{4}\b")
MAPPED = "0000:0000:0000:0000:0000:ffff:"
MAC = re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", re.IGNORECASE)
UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
SERIAL = re.compile(r"\bMT\d{4}[A-Z]{1,2}\d{5}\b")
LONG_HEX = re.compile(r"(?<![0-9a-zA-Z])(?:0x|enx)?[0-9a-f]{12,}\b")


def _mask_text(text: str, names: dict[str, str]) -> str:
    """Mask a text's identifiers. Patterns that could be parts of others come after those."""
    text = GID.sub(lambda match: _gid(match[0], names), text)
    text = MAC.sub(lambda match: _substitute(match[0], names, "02:00:00:00:00:{:02x}"), text)
    text = IPV4.sub(lambda match: _ipv4(match[0], names), text)
    text = UUID.sub(lambda match: _substitute(match[0], names, "00000000-0000-0000-0000-{:012}"), text)
    text = SERIAL.sub(lambda match: _substitute(match[0], names, "MT0000X{:05}"), text)
    return LONG_HEX.sub(lambda match: "0" * len(match[0]), text)


def _substitute(found: str, names: dict[str, str], pattern: str) -> str:
    return names.setdefault(found, pattern.format(len(names) + 1))


def _ipv4(found: str, names: dict[str, str]) -> str:
    return names.setdefault(found, str(IPv4Address("198.18.0.0") + len(names) + 1))


def _gid(found: str, names: dict[str, str]) -> str:
    if not found.startswith(MAPPED):
        return found if not found.strip("0:") else _substitute(found, names, "fe80:" + 6 * "0000:" + "{:04x}")
    address = IPv4Address(bytes.fromhex(found.removeprefix(MAPPED).replace(":", "")))
    digits = IPv4Address(_ipv4(str(address), names)).packed.hex()
    return f"{MAPPED}{digits[:4]}:{digits[4:]}"
