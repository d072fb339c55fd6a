# SPDX-License-Identifier: Apache-2.0
"""capture.py as the runner starts it, on the loopback of a namespace of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from roundabout.runner.tables.packets import write_parquet
from tests.deadline import wait_for
from tests.running import load_program

PROGRAM = Path(__file__).parents[2] / "collectors" / "capture.py"
TIMEOUT_S = 20
NANOSECONDS = b"\x4d\x3c\xb2\xa1"  # first bytes of a file with time stamps in nanoseconds

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(shutil.which("tcpdump") is None, reason="needs tcpdump"),
]

CASES = Path(__file__).parents[1] / "cases" / "rack"
# Brings loopback up in a network namespace of its own and captures there. `sysfs` stands for /sys/class/net.
INSIDE = "ip link set lo up && mount --bind {sysfs} /sys/class/net && exec {python} {program} --interface lo {options}"
SEND = "import socket; s = socket.socket(type=2); [s.sendto(bytes({size}), ('127.0.0.1', 9)) for _ in range({count})]"


class Capturing:
    """A capture.py in a namespace, whose temporary files are in `folder`. lo has the RDMA device, if it is given."""

    def __init__(self, folder: Path, options: str, rdma_device: str | None) -> None:
        self.folder = folder
        sysfs = folder.with_name("net")
        sysfs.mkdir()
        if rdma_device:
            (sysfs / "lo/device/infiniband" / rdma_device).mkdir(parents=True)
        command = INSIDE.format(sysfs=sysfs, python=sys.executable, program=PROGRAM, options=options)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c", command],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        assert self.process.stdout
        self.began = json.loads(self.process.stdout.readline())

    def send(self, count: int, size: int = 1000) -> None:
        code = SEND.format(count=count, size=size)
        net = f"--net=/proc/{self.process.pid}/ns/net"
        subprocess.run(["nsenter", net, sys.executable, "-c", code], check=True)

    def end(self) -> tuple[dict[str, Any], list[bytes]]:
        stdout, stderr = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, stderr
        line, _, rest = stdout.partition(b"\n")
        counts = json.loads(line)
        files = []
        for size in counts["files"]:
            files.append(rest[:size])
            rest = rest[size:]
        assert rest == b""
        return counts, files


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Capturing]]:
    started: list[Capturing] = []

    def begin(options: str = "", rdma_device: str | None = None) -> Capturing:
        folder = tmp_path / "tmp"
        folder.mkdir()
        started.append(Capturing(folder, options, rdma_device))
        return started[-1]

    yield begin
    for each in started:
        each.process.kill()
        each.process.communicate()


def tcpdumps(folder: Path) -> list[int]:
    """Process ids of the tcpdumps that write into `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"tcpdump" and any(str(folder).encode() in word for word in words):
            found.append(int(path.parent.name))
    return found


def test_every_packet_is_there_and_counted(start: Any, tmp_path: Path) -> None:
    before_ns = time.monotonic_ns()
    capturing = start("--snap-bytes 96")
    assert capturing.began["device"] == "lo"
    assert before_ns < capturing.began["monotonic_ns"] < time.monotonic_ns()
    capturing.send(500)
    counts, files = capturing.end()
    path = tmp_path / "0.pcap"
    path.write_bytes(files[0])
    totals = write_parquet([path], tmp_path / "packets.parquet")
    # No program listens: each datagram may be answered by an ICMP error, whose number the kernel limits.
    assert totals.packets == counts["captured"] >= 500
    assert (counts["dropped_by_kernel"], counts["dropped_by_interface"]) == (0, 0)
    assert len(files[0]) == 24 + totals.packets * 16 + sum_captured(path)
    assert list(capturing.folder.iterdir()) == []


def sum_captured(path: Path) -> int:
    """Bytes that were kept of all packets, none of them more than 96."""
    content, at, total = path.read_bytes(), 24, 0
    assert content[:4] == NANOSECONDS
    while at < len(content):
        kept = int.from_bytes(content[at + 8 : at + 12], "little")
        assert kept <= 96
        total, at = total + kept, at + 16 + kept
    return total


def test_a_ring_keeps_to_its_budget_and_to_the_newest(start: Any, tmp_path: Path) -> None:
    capturing = start("--snap-bytes 2000 --budget-mb 2")
    for size in (1400, 1401, 1402):
        capturing.send(1000, size)
        time.sleep(1.2)  # tcpdump looks once a second
    counts, files = capturing.end()
    assert len(files) == 2
    assert sum(map(len, files)) <= 2_000_000 + 2 * 3000
    paths = [tmp_path / f"{number}.pcap" for number in range(2)]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    totals = write_parquet(paths, tmp_path / "packets.parquet")
    assert 500 < totals.packets < counts["captured"]
    assert totals.damage == ()
    stamps = pq.read_table(tmp_path / "packets.parquet")["time_ns"].to_pylist()
    assert stamps == sorted(stamps)


def test_a_kill_leaves_no_tcpdump(start: Any) -> None:
    capturing = start()
    wait_for(lambda: len(tcpdumps(capturing.folder)) == 1, TIMEOUT_S)
    capturing.process.send_signal(signal.SIGKILL)
    wait_for(lambda: tcpdumps(capturing.folder) == [], TIMEOUT_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_on_the_host(start: Any, number: signal.Signals) -> None:
    capturing = start()
    capturing.send(10)
    capturing.process.send_signal(number)
    _, said = capturing.process.communicate(timeout=TIMEOUT_S)
    assert (capturing.process.returncode, said) == (1, f"capture: ended by {number.name}\n".encode())
    assert tcpdumps(capturing.folder) == []
    assert list(capturing.folder.iterdir()) == []


def test_an_interface_that_is_not_there_is_named() -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, "--interface", "nothere0"], input=b"", capture_output=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"capture: tcpdump: nothere0: ")


def test_an_rdma_device_that_libpcap_lacks_is_captured_at_its_interface(start: Any) -> None:
    capturing = start(rdma_device="mlx5_0")
    on_hardware = (CASES / "tcpdump-libpcap-without-rdma.txt").read_text()
    assert capturing.began["device"] == "lo"
    assert capturing.began["rdma_error"] == " ".join(on_hardware.split())
    capturing.send(10)
    counts, (content,) = capturing.end()
    assert (counts["captured"] >= 10, counts["dropped_by_kernel"], content[:4]) == (True, 0, NANOSECONDS)


def test_an_rdma_device_is_captured_in_microseconds_and_its_losses_are_unknown(start: Any) -> None:
    """nflog is a device of libpcap that refuses nanoseconds, as RDMA devices do."""
    refused = subprocess.run(["tcpdump", "-i", "nflog", "--time-stamp-precision=nano"], capture_output=True, text=True)
    on_hardware = (CASES / "tcpdump-libpcap-with-rdma-nano.txt").read_text()
    assert refused.stderr.strip() == on_hardware.strip().replace("mlx5_0", "nflog")
    capturing = start(rdma_device="nflog")
    assert (capturing.began["device"], capturing.began["rdma_error"]) == ("nflog", None)
    counts, (content,) = capturing.end()
    assert content[:4] == b"\xd4\xc3\xb2\xa1"  # microseconds
    assert (counts["captured"], counts["dropped_by_kernel"], counts["dropped_by_interface"]) == (0, None, None)


def test_a_host_without_tcpdump_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    capture = load_program(PROGRAM)
    with pytest.raises(capture.CaptureError, match="cannot run tcpdump: No such file"):
        capture.start_anywhere("lo", 64, 1, tmp_path)
