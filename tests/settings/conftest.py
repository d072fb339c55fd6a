# SPDX-License-Identifier: Apache-2.0
"""A host made of files: /proc/sys below a folder; `ip` and `transport` are programs that keep their values there."""

import sys
from pathlib import Path

import pytest

from roundabout.settings.settings import Host

TOOL = (
    f"#!{sys.executable} -SE"
    + r"""
import json, os, pathlib, sys
state = pathlib.Path(__file__).parent.parent
words = sys.argv[1:]
if os.path.basename(sys.argv[0]) == "ip":
    name = words[words.index("dev") + 1]
    pairs = words[words.index("dev") + 2:]
    changes = dict(zip(pairs[::2], map(int, pairs[1::2])))
    file, shape = state / f"link-{name}", lambda values: [dict(values, ifname=name)]
else:
    name = words[1]
    changes = {key: float(value) for key, value in (pair.split("=") for pair in words[2:])}
    file, shape = state / f"transport-{name}", lambda values: {"params": values, "counters": {}}
if not file.exists():
    sys.exit(f"{name} does not exist")
values = json.loads(file.read_text())
if changes:
    values.update(changes)
    file.write_text(json.dumps(values))
else:
    print(json.dumps(shape(values)))
"""
)

FILES = {
    "proc/sys/kernel/random/boot_id": "b001\n",
    "proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
    "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic\n",
    "proc/sys/net/ipv4/tcp_ecn": "2\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "link-eth0": '{"mtu": 1500, "gso_max_size": 65536}',
    "transport-dcqcn": '{"T_us": 125.0, "F": 1.0, "g": 0.0625}',
}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    root = tmp_path / "root"
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for tool in ("ip", "transport"):
        path = root / "bin" / tool
        path.parent.mkdir(exist_ok=True)
        path.write_text(TOOL)
        path.chmod(0o755)
    return Host(root, tmp_path / "state")
