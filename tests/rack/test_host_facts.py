# SPDX-License-Identifier: Apache-2.0
"""What a run notes of its hosts: what firmware does by itself is among it, where its tools are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.runner.session.host_facts import HOST_SCRIPT

pytestmark = pytest.mark.unit

TOOLS = Path(__file__).parents[1] / "settings/stand_ins/tools.py"
# As NVIDIA's "Adaptive Retransmission: Parameters Control" shows it.
ROCE_ACCL = """ Sending access register...

Field Name                     | Data
==================================================
roce_adp_retrans_field_select  | 0x00000001
roce_slow_restart_field_select | 0x00000001
roce_adp_retrans_en            | 0x00000001
roce_tx_window_en              | 0x00000000
roce_slow_restart_en           | 0x00000001
roce_slow_restart_idle_en      | 0x00000000
min_ack_timeout_limit_disabled | 0x00000000
"""
# Default, current, next boot: what is in force is noted. The device has no ROCE_CC_LEGACY_DCQCN.
NV = {
    "ROCE_CC_PRIO_MASK_P1": [255, 8, 255],
    "PCC_INT_EN": [0, 0, 1],
    "ZERO_TOUCH_TUNING_ENABLE": [0, 0, 1],
    "ROCE_ADAPTIVE_ROUTING_EN": [0, 1, 1],
}


def facts(path: str, *further: str) -> dict[str, str]:
    command = ["sh", "-c", HOST_SCRIPT, "facts", "no-such-nic", *further]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": path}, check=True)
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("maker", ["mlx", "mst"])
def test_roce_accelerations_of_the_firmware_are_recorded(tmp_path: Path, maker: str) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tmp_path / "nv-").write_text(json.dumps(NV))
    scripts = {"reg": f"#!/bin/sh\ncat <<'SAID'\n{ROCE_ACCL}SAID\n"}
    scripts["config"] = f"#!{sys.executable} -SE\n{TOOLS.read_text()}"
    for name, script in scripts.items():
        (tools / f"{maker}{name}").write_text(script)
        (tools / f"{maker}{name}").chmod(0o755)
    found = facts(f"{tools}:{os.environ['PATH']}")
    assert found["RoCE acceleration"].split(";") == [
        "roce_adp_retrans_en=0x00000001", "roce_tx_window_en=0x00000000", "roce_slow_restart_en=0x00000001",
        "roce_slow_restart_idle_en=0x00000000",
    ]  # fmt: skip
    expected = "ROCE_CC_PRIO_MASK_P1=8;PCC_INT_EN=0;ZERO_TOUCH_TUNING_ENABLE=0;ROCE_ADAPTIVE_ROUTING_EN=1"
    assert found["NV config"] == expected


def test_facts_about_further_nics_have_their_names(tmp_path: Path) -> None:
    (tmp_path / "ethtool").write_text('#!/bin/sh\n[ "$1" != -i ] || echo "driver of $2"\n')
    (tmp_path / "ethtool").chmod(0o755)
    found = facts(f"{tmp_path}:{os.environ['PATH']}", "eth1", "eth2")
    assert [found[f"nic{name}"] for name in ("", " eth1", " eth2")] == [
        "driver of no-such-nic", "driver of eth1", "driver of eth2",
    ]  # fmt: skip
    assert len([name for name in found if name.startswith("link")]) == 3


def test_a_host_without_such_tools_has_nothing_to_note(tmp_path: Path) -> None:
    for name in ("basename", "readlink", "sed", "tr", "uname"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    found = facts(f"{tmp_path}:/bin")
    assert found["kernel"]
    assert (found["RoCE acceleration"], found["NV config"]) == ("", "")
