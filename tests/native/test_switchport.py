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
    return subprocess.run(
        [SWITCHPORT, command, pins.folder], input=lines, capture_output=True, text=True, check=False, timeout=60
    )


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


def test_routes_are_replaced_as_a_whole(pins: Any) -> None:
    pins.make("routes", 16, 16)
    first = "100 10.77.0.1 10.77.0.3 61000 29500 102\n"
    for lines in (first, "101 10.77.0.3 10.77.0.1 0 0 100\n" + first.replace("61000", "61001")):
        done = switchport(pins, "set-routes", lines)
        assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(switchport(pins, "show-routes").stdout)
    assert sorted(shown, key=lambda route: route["entered_by"]) == [
        {"entered_by": 100, "sender": "10.77.0.1", "receiver": "10.77.0.3", "sender_port": 61_001,
         "receiver_port": 29_500, "left_by": 102, "bytes": 0},
        {"entered_by": 101, "sender": "10.77.0.3", "receiver": "10.77.0.1", "sender_port": 0,
         "receiver_port": 0, "left_by": 100, "bytes": 0},
    ]  # fmt: skip


def test_a_route_that_makes_no_sense_is_refused(pins: Any) -> None:
    pins.make("routes", 16, 16)
    done = switchport(pins, "set-routes", "100 10.77.0.1 somewhere 0 0 102\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "a route on stdin makes no sense" in done.stderr


ROUTE = "100 10.77.0.1 10.77.0.3 61000 29500 102\n"


NONSENSE = "a route on stdin makes no sense"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("100 10.77.0.1 somewhere 0 0 102\n", NONSENSE),
        ("100\n", NONSENSE),
        (ROUTE + ROUTE, "two routes on stdin are for the same flow at the same port"),
    ],
)
def test_routes_that_are_refused_leave_those_that_are_set(pins: Any, wrong: str, complaint: str) -> None:
    pins.make("routes", 16, 16)
    assert switchport(pins, "set-routes", ROUTE).returncode == 0
    before = switchport(pins, "show-routes").stdout
    done = switchport(pins, "set-routes", ROUTE.replace("61000", "61001") + wrong)
    assert (done.returncode, done.stdout) == (1, "")
    assert complaint in done.stderr
    assert switchport(pins, "show-routes").stdout == before


@pytest.mark.parametrize(("lines", "complaint"), [("", "deleting a route failed"), (ROUTE, "setting a route failed")])
def test_routes_that_cannot_be_changed_are_an_error(pins: Any, lines: str, complaint: str) -> None:
    pins.make("routes", 16, 16)
    assert switchport(pins, "set-routes", ROUTE).returncode == 0
    pins.freeze("routes")
    done = switchport(pins, "set-routes", lines)
    assert done.returncode == 1
    assert complaint in done.stderr
