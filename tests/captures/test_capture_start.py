# SPDX-License-Identifier: Apache-2.0
"""Captures that do not start, and programs that print other lines than capture.py."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.trial.captures import CaptureError, NicCapture, RunningCapture, capture_hosts, describe_gaps
from roundabout.spec.capture import Capture
from tests.deadline import wait_for

pytestmark = pytest.mark.unit

STARTS = """
import pathlib, sys
print('{"device": "eth0", "rdma_error": null, "monotonic_ns": 5}', flush=True)
sys.stdin.read()
pathlib.Path(__file__).with_name("ended").touch()
print('{"files": [], "captured": 0}')
"""
PRINTS = """
import pathlib, sys
sys.stdout.buffer.write(%r)
sys.stdout.flush()
sys.stdin.read()
pathlib.Path(__file__).with_name("ended").touch()
"""


def make_host(folder: Path, name: str, program: str) -> Host:
    """Return a host whose capture.py is `program`."""
    (folder / name / "bin").mkdir(parents=True)
    (folder / name / "bin" / "capture.py").write_text(program)
    return Host(name, name, "10.0.0.1", 24, "eth0", folder / name)


def has_ended(folder: Path, name: str) -> bool:
    return (folder / name / "bin" / "ended").exists()


def test_started_captures_end_if_another_host_cannot_capture(tmp_path: Path) -> None:
    hosts = [make_host(tmp_path, "s0", STARTS), make_host(tmp_path, "s1", "raise SystemExit('capture: no tcpdump')")]

    def on_each_host(action: Callable[[Host], Any]) -> dict[str, Any]:
        return {host.name: action(host) for host in hosts}

    session: Any = SimpleNamespace(
        on_each_host=on_each_host, connections={host.name: LocalConnection(host.name) for host in hosts}
    )
    into: dict[str, list[NicCapture]] = {}
    capture = Capture(hosts=("s0", "s1"))
    with pytest.raises(CaptureError, match="s1: capturing failed: no tcpdump") as failed:  # noqa: SIM117
        with capture_hosts(session, capture, tmp_path / "captures", into):
            pytest.fail("the block runs without a capture")
    assert "on s1, as root: `tcpdump -i eth0 -c 1`" in (failed.value.hint or "")
    assert has_ended(tmp_path, "s0")
    assert set(into) == {"s0"}


@pytest.mark.parametrize("line", [b"Warning: no clock\n", b'{"device": "et\n', b"\n", b"\xff\xfe\n"])
def test_an_unexpected_line_is_repeated_and_the_program_ends(tmp_path: Path, line: bytes) -> None:
    host = make_host(tmp_path, "s0", PRINTS % line)
    with pytest.raises(CaptureError, match="s0: capture.py printed '.*', expected a line of JSON"):
        RunningCapture(LocalConnection("s0"), host, Capture(hosts=("s0",)))
    wait_for(lambda: has_ended(tmp_path, "s0"), 10)


def test_a_notice_names_hosts_without_rdma_and_those_whose_losses_are_unknown() -> None:
    counted = NicCapture("ens1", 0, (), {"dropped_by_kernel": 0})
    without_rdma = NicCapture("ens1", 0, (), {"dropped_by_kernel": 0}, "tcpdump: mlx5_0: No such device exists")
    uncounted = NicCapture("mlx5_0", 0, (), {"dropped_by_kernel": None})
    assert describe_gaps({"s0": [counted]}) is None
    notice = describe_gaps({"s0": [counted], "s1": [counted, without_rdma], "s2": [uncounted]}) or ""
    assert notice.startswith("captures of s1 are without RDMA traffic")
    assert "(s1: tcpdump: mlx5_0: No such device exists)" in notice
    assert notice.endswith("captures of s2: dropped packets: unknown")
