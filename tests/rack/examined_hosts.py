# SPDX-License-Identifier: Apache-2.0
"""Files and programs of a rack host, as its examination reads them."""

import subprocess
from pathlib import Path

from roundabout.testbeds.rack.examination import SCRIPT, script_arguments
from roundabout.testbeds.rack.inventory import read_inventory

PCI = "0000:3b:00.0"
GPU = "0000:42:00.0"
GID = "0000:0000:0000:0000:0000:ffff:0a0a:0001"  # 10.10.0.1
SHOW = "2: ens1f0np0    inet 10.10.0.1/24 brd 10.10.0.255 scope global ens1f0np0"
NV = """
Configurations:                              Next Boot
        LLDP_NB_DCBX_P1                             True(1)
        DCBX_WILLING_P1                             {}
"""
# Of a ConnectX-6 Dx: `lspci -vv` (NVIDIA/l2fwd-nv, issue 6) prints 16GT/s and x16 as its capability.
SYSFS = {
    "current_link_width": "16", "max_link_width": "16", "current_link_speed": "16.0 GT/s PCIe",
    "max_link_speed": "16.0 GT/s PCIe", "numa_node": "0", "local_cpulist": "0-31,64-95",
}  # fmt: skip


def furnish(root: Path) -> None:
    """All files of an Ubuntu server with a ConnectX NIC and the inbox driver."""
    switch = root / "sys/devices/pci0000:3a/0000:3a:00.0/0000:40:00.0"
    device, gpu = switch / "0000:41:00.0" / PCI, switch / "0000:41:01.0" / GPU
    debugfs = root / "sys/kernel/debug/mlx5" / PCI / "cc_params"
    for path in (device / "infiniband/mlx5_0", root / "sys/class/net/ens1f0np0", debugfs, root / "etc"):
        path.mkdir(parents=True)
    (debugfs / "rp_time_reset").write_text("300\n")
    for index, (gid, kind) in enumerate([("fe80:" * 7 + "0001", "RoCE v2"), (GID, "IB/RoCE v1"), (GID, "RoCE v2")]):
        port = root / "sys/class/infiniband/mlx5_0/ports/1"
        for folder, content in (("gids", gid), ("gid_attrs/types", kind)):
            (port / folder).mkdir(parents=True, exist_ok=True)
            (port / folder / str(index)).write_text(f"{content}\n")
    for name in ("sys/kernel/config/rdma_cm", "sys/kernel/btf", "sys/devices/system/cpu/cpu0/cpufreq"):
        (root / name).mkdir(parents=True)
    (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").touch()
    (root / "sys/class/net/ens1f0np0/device").symlink_to(device)
    (root / "sys/class/net/ens1f0np0/carrier_changes").write_text("5\n")
    for name, content in SYSFS.items():
        (device / name).write_text(f"{content}\n")
    (root / "sys/kernel/security").mkdir()
    (root / "sys/kernel/security/lockdown").write_text("[none] integrity confidentiality\n")
    (root / "sys/kernel/btf/vmlinux").touch()
    (root / "etc/shadow").touch()
    (root / "etc/os-release").write_text("ID=ubuntu\nVERSION_ID=22.04\n")
    add_pci(root, gpu, vendor="0x10de", **{"class": "0x030200"})
    for bridge in (switch.parent, switch, device.parent, gpu.parent):
        add_pci(root, bridge, vendor="0x1000", **{"class": "0x060400"})
    (root / "sys/module/nvidia_peermem").mkdir(parents=True)


def add_pci(root: Path, device: Path, **files: str) -> None:
    device.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (device / name).write_text(f"{content}\n")
    link = root / "sys/bus/pci/devices" / device.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(device)


def add_tool(path: Path, script: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


# As ethtool prints them: of mlx5 (an issue on rdma-core), of a cable (sonic-mgmt's plan of sfputil tests), of FEC (the
# commit that adds FEC statistics to the driver ice).
ETHTOOL = """
driver: mlx5_core
version: 5.10.0+
firmware-version: 14.21.2328 (MT_2470112034)
expansion-rom-version:
bus-info: 0000:3b:00.0
"""
MODULE = """
    Identifier                                : 0x11 (QSFP28)
    Extended identifier                       : 0x00
    Vendor name                               : Mellanox
    Vendor OUI                                : 00:02:c9
    Vendor PN                                 : MCP1600-E001
    Vendor SN                                 : MT1834VS04288
"""
FEC = """
FEC parameters for ens21f0np0:
Supported/Configured FEC encodings: Auto RS BaseR
Active FEC encoding: RS
"""


def add_ethtool(path: Path, *changes: tuple[str, str]) -> None:
    """Add a stand-in for ethtool that prints the texts above, with these changes."""
    texts = "".join(
        f"{option}) echo '{text}' ;; " for option, text in (("-i", ETHTOOL), ("-m", MODULE), ("--show-fec", FEC))
    )
    for old, new in changes:
        assert old in texts
        texts = texts.replace(old, new)
    add_tool(path, f"case $1 in {texts}esac")


def add_all(tools: Path) -> None:
    for name in ("python3", "apt-get", "iperf3", "systemctl", "ib_write_bw", "setpci"):
        add_tool(tools / name)
    add_tool(tools / "nvidia-smi", "echo NVIDIA A100-SXM4-80GB, 570.26")
    add_tool(tools / "ip", f"echo '{SHOW}'")
    add_tool(tools / "getconf", "echo glibc 2.99")
    add_tool(tools / "tcpdump", "echo '1.ens1f0np0 [Up, Running]'; echo '2.mlx5_0 (RDMA sniffer)'")
    add_tool(tools / "ping", f'echo "$@" >> {tools.parent}/pinged')


def examine(inventory_file: Path, root: Path, path: str, gpu: str = "check") -> subprocess.CompletedProcess[str]:
    text = inventory_file.read_text()
    given = f'gpu: {gpu}, clock: chrony, mtu_bytes: 1500, irq_cpus: "0-7",'
    inventory_file.write_text(text.replace("mtu_bytes: 4200,", given))
    inventory = read_inventory(inventory_file)
    words = script_arguments(inventory, inventory.nics["s0"], str(root))
    command = ["/bin/sh", "-s", "--", *words]
    return subprocess.run(command, input=SCRIPT, capture_output=True, text=True, env={"PATH": path})


EQ = "        {:<44}{:<20}{:<20}{:<20}"


def add_new_nic(root: Path, tools: Path, legacy: str = "", user: str = "") -> None:
    """Furnish a server with a ConnectX-6 Dx. Its mstconfig answers with these columns, or lacks the setting."""
    furnish(root)
    (root / "sys/class/net/ens1f0np0/device/device").write_text("0x101d\n")
    answers = {}
    for name, values in (("ROCE_CC_LEGACY_DCQCN", legacy), ("USER_PROGRAMMABLE_CC", user)):
        columns = EQ.format(name, "True(1)", *values.split()) if "(" in values else values
        answers[name] = columns or f"-E- The Device doesn't support {name} parameter"
    script = "".join(f'{name}) echo "{said}";; ' for name, said in answers.items())
    add_tool(tools / "mstconfig", f"case $5 in {script} esac")


CASES = Path(__file__).parents[1] / "cases/rack"
