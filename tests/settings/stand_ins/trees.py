# SPDX-License-Identifier: Apache-2.0
"""Servers with ConnectX NICs, eth2 and so on, as trees of files.

Constructed from the project's notes on RoCE, where paths, names and defaults come from; nothing was recorded from
hardware.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PCI = "0000:3b:00.0"
DEVICE = f"sys/devices/pci0000:3a/{PCI}"
CC_PARAMS = f"sys/kernel/debug/mlx5/{PCI}/cc_params"
TOOLS = Path(__file__).with_name("tools.py")

# Name in OFED's sysfs, in cc_params, default.
RP = [
    ("rpg_time_reset", "rp_time_reset", 300),
    ("rpg_byte_reset", "rp_byte_reset", 32767),
    ("rpg_threshold", "rp_threshold", 1),
    ("rpg_ai_rate", "rp_ai_rate", 5),
    ("rpg_hai_rate", "rp_hai_rate", 50),
    ("rpg_min_rate", "rp_min_rate", 1),
    ("rpg_max_rate", "rp_max_rate", 0),
    ("rpg_gd", "rp_gd", 11),
    ("rpg_min_dec_fac", "rp_min_dec_fac", 50),
    ("dce_tcp_g", "rp_dce_tcp_g", 1019),
    ("dce_tcp_rtt", "rp_dce_tcp_rtt", 1),
    ("rate_reduce_monitor_period", "rp_rate_reduce_monitor_period", 4),
    ("initial_alpha_value", "rp_initial_alpha_value", 1023),
    ("clamp_tgt_rate", "rp_clamp_tgt_rate", 0),
    ("clamp_tgt_rate_after_time_inc", "rp_clamp_tgt_rate_ati", 1),
    ("rate_to_set_on_first_cnp", "rp_rate_to_set_on_first_cnp", 0),
]
NP = [
    ("min_time_between_cnps", "np_min_time_between_cnps", 4),
    ("cnp_dscp", "np_cnp_dscp", 48),
    ("cnp_802p_prio", "np_cnp_prio", 6),
]
QOS = {
    "dcbx": "fw",
    "dscp": {},
    "prio_tc": [1, 0, 2, 3, 4, 5, 6, 7],
    "schedule": ["vendor"] * 8,
    "pfc": [0] * 8,
    "delay": 7,
    "prio2buffer": [0] * 8,
    "buffer_size": [130944, 0, 0, 0, 0, 0, 0, 0],
    "max_buffer_size": 262016,
}
LINK = {
    "mtu": 1500,
    "gso_max_size": 65536,
    "autoneg": "on",
    "speed": 50000,
    "speeds": [10000, 25000, 50000],
    "pause": {"autoneg": "off", "rx": "on", "tx": "on"},
    "pfc_prevention_ms": 8000,
}
ROUTES = ["default via 192.0.2.1 dev eth0", "10.0.2.0/24 dev eth2 proto kernel scope link src 10.0.2.1"]
GIDS = [
    ("fe80:0000:0000:0000:0ac0:ebff:fe40:8df2", "IB/RoCE v1"),
    ("fe80:0000:0000:0000:0ac0:ebff:fe40:8df2", "RoCE v2"),
    ("0000:0000:0000:0000:0000:ffff:0a00:0201", "IB/RoCE v1"),
    ("0000:0000:0000:0000:0000:ffff:0a00:0201", "RoCE v2"),
]


def common(device: str) -> dict[str, str]:
    """What every server has."""
    files = {
        "proc/sys/kernel/random/boot_id": "b001",
        "proc/sys/net/ipv4/tcp_ecn": "2",
        "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic",
        f"{DEVICE}/device": device,
        f"{DEVICE}/infiniband/mlx5_0/name": "mlx5_0",
        "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode": "IB/RoCE v1",
        "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos": "0",
        "link-eth2": json.dumps(LINK),
        "link-eth0": json.dumps(LINK),
        "qos-eth2": json.dumps(QOS),
        "routes": json.dumps(ROUTES),
        "transport-dcqcn": json.dumps({"T_us": 125.0, "F": 1.0}),
    }
    for cpu in range(4):
        files[f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"] = "powersave" if cpu else "schedutil"
        files[f"{DEVICE}/msi_irqs/{40 + cpu}"] = "msix"
        files[f"proc/irq/{40 + cpu}/smp_affinity_list"] = "0-3"
    for index, (gid, kind) in enumerate(GIDS):
        port = "sys/class/infiniband/mlx5_0/ports/1"
        files.update({f"{port}/gids/{index}": gid, f"{port}/gid_attrs/types/{index}": kind})
        files[f"{port}/gid_attrs/ndevs/{index}"] = "eth2"
    return files


def nv(**others: int) -> dict[str, str]:
    """mlxconfig's file: default, current and next boot of each parameter."""
    values = {f"{ofed.upper()}_P1": default for ofed, _, default in RP + NP}
    values.update(ROCE_CC_PRIO_MASK_P1=255, **others)
    return {f"nv-{PCI}": json.dumps({name: [value] * 3 for name, value in values.items()})}


def ecn(folder: str) -> dict[str, str]:
    """OFED's sysfs; `folder` is params/ or nothing."""
    base = "sys/class/net/eth2/ecn"
    files = {f"{base}/roce_rp/{folder}{ofed}": str(default) for ofed, _, default in RP}
    files.update({f"{base}/roce_np/{folder}{ofed}": str(default) for ofed, _, default in NP})
    files.update({f"{base}/{side}/enable/{prio}": "0" for side in ("roce_rp", "roce_np") for prio in range(8)})
    files["sys/class/infiniband/mlx5_0/tc/1/traffic_class"] = ""
    return files


def cc_params() -> dict[str, str]:
    """Mainline's debugfs."""
    files = {f"{CC_PARAMS}/{name}": str(default) for _, name, default in RP + NP}
    return {**files, f"{CC_PARAMS}/np_cnp_prio_mode": "1"}


SERVERS = {
    "connectx-5-ofed": ({**common("0x1017"), **nv(), **ecn("")}, ("mlnx_qos", "mlxconfig", "show_gids")),
    "connectx-5-ofed-params": ({**common("0x1017"), **nv(), **ecn("params/")}, ("mlnx_qos", "mlxconfig", "show_gids")),
    "connectx-5-inbox": ({**common("0x1017"), **cc_params()}, ("dcb", "python3")),
    "connectx-6-dx": (
        {**common("0x101d"), **nv(ROCE_CC_LEGACY_DCQCN=0), **cc_params()},
        ("dcb", "python3", "mlxconfig"),
    ),
}


QOS_WANTED = {
    "dcbx": "os",
    "trust": "dscp",
    "dscp26_prio": 3,
    "dscp48_prio": 6,
    "prio_tc": "0,1,2,3,4,5,6,7",
    "tc_schedule": "14,14,14,16,14,14,strict,14",
    "pfc": "0,0,0,1,0,0,0,0",
    "cable_length_m": 5,
}
DCQCN_WANTED = {
    "T_us": 100,
    "byte_counter_bytes": 0,
    "F": 5,
    "R_AI_mbps": 40,
    "R_HAI_mbps": 400,
    "R_min_mbps": 10,
    "R_max_mbps": 25000,
    "Gd_log2": 10,
    "min_decrease_factor_percent": 25,
    "g_code": 1020,
    "alpha_timer_us": 55,
    "rate_reduce_period_us": 50,
    "alpha_initial": 0.5,
    "clamp_target_rate": 1,
    "clamp_target_rate_after_timer": 0,
    "rate_on_first_cnp_mbps": 10000,
    "cnp_gap_us": 50,
    "cnp_dscp": 46,
    "cnp_prio": 5,
}


def document(name: str) -> dict[str, Any]:
    """Settings that are all other than what is found on this server."""
    wanted: dict[str, Any] = {
        "sysctl": {"net.ipv4.tcp_ecn": 1},
        "cpu": {"governor": "performance"},
        "link": {"eth2": {"mtu": 9000, "speed_mbps": 25000, "pause_rx": 0, "pause_tx": 0, "pfc_prevention_ms": 200}},
        "irq": {"eth2": {"cpus": "0 1 0 1"}},
        "qos": {"eth2": dict(QOS_WANTED, prio2buffer="0,0,0,1,0,0,0,0", buffer_size_bytes="99968,130944,0,0,0,0,0,0")},
        "roce": {"eth2": {"mode": "RoCE v2", "tos": 106}},
        "dcqcn": {"eth2": dict(DCQCN_WANTED)},
        "route": {"10.0.2.0/24": {"congctl": "reno"}},
        "transport": {"dcqcn": {"T_us": 100}},
    }
    if "ofed" in name:
        wanted["roce"]["eth2"]["traffic_class"] = 106
        wanted["dcqcn"]["eth2"].update({"rp_enable_prio3": 1, "np_enable_prio3": 1})
        wanted["nv"] = {"eth2": {"T_us": 100, "g_code": 1020, "ROCE_CC_PRIO_MASK_P1": 8}}
    else:
        wanted["dcqcn"]["eth2"]["cnp_prio_mode"] = 0
    return wanted


def document_of_nic(of_first: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a document about NIC 0 as one about another NIC."""
    found: dict[str, Any] = json.loads(of_nic(json.dumps(of_first), number))
    return found


def merge(documents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings of several NICs as one document."""
    merged: dict[str, Any] = {}
    for document in documents:
        for kind, content in document.items():
            merged.setdefault(kind, {}).update(content)
    return merged


def build(name: str, root: Path, nics: int = 1) -> None:
    """Write a server's tree to `root`, which stands for /. NIC 0 is eth2."""
    files, tools = SERVERS[name]
    for number in range(nics):
        write(root, {of_nic(path, number): of_nic(content, number) for path, content in files.items()})
        interface = root / of_nic("sys/class/net/eth2", number)
        interface.mkdir(parents=True, exist_ok=True)
        (interface / "device").symlink_to(of_nic(f"../../../../{DEVICE}", number))
    routes = [ROUTES[0], *(of_nic(ROUTES[1], number) for number in range(nics))]
    write(root, {"routes": json.dumps(routes)})
    add_tools(root, "ip", "ethtool", "transport", *tools)


def of_nic(text: str, number: int) -> str:
    """Return a text about NIC 0 with the names and addresses of another NIC."""
    names = {
        "eth2": f"eth{2 + number}",
        "mlx5_0": f"mlx5_{number}",
        PCI: f"0000:{0x3B + number:x}:00.0",
        "msi_irqs/4": f"msi_irqs/{4 + number}",
        "proc/irq/4": f"proc/irq/{4 + number}",
        "10.0.2.": f"10.0.{2 + number}.",
        "0a00:02": f"0a00:{2 + number:02x}",
    }
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)


def write(root: Path, files: dict[str, str]) -> None:
    """Write files below `root`."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{content}\n")


def add_tools(root: Path, *names: str) -> None:
    """Put stand-ins for tools into `root`/bin."""
    (root / "bin").mkdir(exist_ok=True)
    for name in names:
        (root / "bin" / name).write_text(f"#!{sys.executable} -SE\n{TOOLS.read_text()}")
        (root / "bin" / name).chmod(0o755)


def reboot(name: str, root: Path) -> None:
    """All is as it was, but for NV config, of which the next boot's values are in force."""
    stored = {file.name: json.loads(file.read_text()) for file in root.glob("nv-*")}
    shutil.rmtree(root)
    build(name, root)
    for file, values in stored.items():
        kept = {key: [default, following, following] for key, (default, _, following) in values.items()}
        (root / file).write_text(json.dumps(kept))
    (root / "proc/sys/kernel/random/boot_id").write_text("b002\n")


def snapshot(root: Path) -> dict[str, object]:
    """Everything below `root` but tools, as far as it means something."""
    files = (path for path in root.rglob("*") if path.is_file() and path.parent != root / "bin")
    return {str(path.relative_to(root)): meaning(path) for path in files}


def meaning(path: Path) -> object:
    """A file's content; -1 is how OFED's traffic_class is set to none."""
    content = path.read_text().strip()
    if path.name == "traffic_class":
        return content.replace("-1", "")
    try:
        value = json.loads(content)
    except ValueError:
        return content
    if isinstance(value, dict):
        value.pop("manual", None)  # nothing but loading the driver gives buffers back to firmware
    return sorted(value, key=str) if isinstance(value, list) else value
