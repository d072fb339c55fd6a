# SPDX-License-Identifier: Apache-2.0
"""Run at a guest's boot: its NIC gets soft-RoCE, and what a ConnectX-5 has beyond that as files, until a reboot."""

import json
import shutil
import subprocess
from pathlib import Path

import trees

NIC, RDMA = "roce0", "rxe0"
STATE = Path("/opt/stand-ins/state")  # nothing in /run may be executed
DEBUGFS = Path("/sys/kernel/debug")

subprocess.run(["modprobe", "rdma_rxe"], check=True)
subprocess.run(["rdma", "link", "add", RDMA, "type", "rxe", "netdev", NIC], check=True)
subprocess.run(["/usr/bin/python3", "/opt/stand-ins/priority_counters.py", "begin", NIC], check=True)
shutil.rmtree(STATE, ignore_errors=True)
trees.write(STATE, {f"link-{NIC}": json.dumps(trees.LINK), f"qos-{NIC}": json.dumps(trees.QOS)})
trees.add_tools(STATE, "dcb", "ethtool", "python3")
subprocess.run(["mount", "-t", "tmpfs", "stand-ins", DEBUGFS], check=True)  # no program can make files in debugfs
parameters = DEBUGFS / "mlx5" / Path(f"/sys/class/net/{NIC}/device").resolve().name / "cc_params"
trees.write(parameters, {Path(path).name: value for path, value in trees.cc_params().items()})
