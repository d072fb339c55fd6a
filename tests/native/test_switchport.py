# SPDX-License-Identifier: Apache-2.0
"""`switchport` on maps that the tests pin: what it writes to them, and what it shows."""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

SWITCHPORT = Path(__file__).parents[2] / "build/bin/switchport"
IFINDEX = struct.pack("<I", 7)
CONFIG_BYTES = 96  # struct ecn_config


def switchport(pins: Any, command: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([SWITCHPORT, command, pins.folder], input=lines, capture_output=True, text=True, check=False)


def test_setting_a_port_leaves_its_counters_to_the_programs_that_count(pins: Any) -> None:
    pins.make("ports", 4, 32)
    pins.put("ports", IFINDEX, struct.pack("<4Q", 100, 150_000, 90, 17))
    pins.freeze("ports")
    pins.make("configs", 4, CONFIG_BYTES)
    pins.put("configs", IFINDEX, bytes(CONFIG_BYTES))
    pins.make("echoes", 4, 16)
    pins.put("echoes", IFINDEX, struct.pack("<2Q", 3, 450_000))
    done = switchport(pins, "set", "7 4000 8000 0.5 125000 5000000 4 46:1\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(switchport(pins, "show").stdout) == [
        {"ifindex": 7, "packets": 100, "bytes": 150_000, "ect_packets": 90, "marks": 17, "echoes": 3,
         "echo_ns": 450_000, "kmin_bytes": 4000, "kmax_bytes": 8000, "pmax": 0.5, "packets_per_segment": 4},
    ]  # fmt: skip


def test_a_port_that_was_never_attached_is_refused(pins: Any) -> None:
    pins.make("configs", 4, CONFIG_BYTES)
    done = switchport(pins, "set", "7 4000 8000 0.5 125000 5000000 0\n")
    assert done.returncode == 1
    assert "no such port" in done.stderr
