# SPDX-License-Identifier: Apache-2.0
"""sampler as a whole, on links and maps that the tests make."""

import json
import statistics
import struct
import subprocess
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

Rows = list[dict[str, str]]


def parse(lines: list[str]) -> dict[str, Rows]:
    """The records by kind, each row by the names in the kind's header."""
    fields: dict[str, list[str]] = {}
    rows: dict[str, Rows] = {}
    for line in lines:
        kind, *values = line.split(",")
        if kind.startswith("#"):
            fields[kind[1:]] = values
            rows[kind[1:]] = []
        else:
            rows[kind].append(dict(zip(fields[kind], values, strict=True)))
    return rows


def sample(program: Any, seconds: float) -> dict[str, Rows]:
    time.sleep(seconds)
    program.close_input()
    rows = parse(program.lines())
    assert program.status() == 0, program.errors()
    return rows


def numbers(rows: Rows, field: str) -> list[int]:
    return [int(row[field]) for row in rows]


def ifindex(host: Any) -> int:
    link: dict[str, int] = json.loads(host.run("ip -j link show eth0"))[0]
    return link["ifindex"]


def send_datagrams(host: Any, count: int) -> None:
    code = (
        f"import socket; s = socket.socket(type=2); [s.sendto(bytes(1000), ('10.99.0.2', 9)) for _ in range({count})]"
    )
    subprocess.run(host.inside("python3", "-c", code), check=True)


def test_samples_come_every_period_without_drift(start: Callable[..., Any], namespaces: Any) -> None:
    rows = sample(start("sampler", "--interfaces", "eth0", within=namespaces[0]), 2.5)
    before = numbers(rows["port"], "before_ns")
    off_ns = [(at - before[0]) % 10_000_000 for at in before]
    off_ns = [min(off, 10_000_000 - off) for off in off_ns]
    assert statistics.median(off_ns) < 1_000_000
    last = rows["sampler"][-1]
    grid = (int(last["before_ns"]) - before[0]) // 10_000_000 + 1
    assert abs(int(last["samples"]) + int(last["missed"]) - grid) <= 1
    assert all(int(row["before_ns"]) <= int(row["after_ns"]) for row in rows["port"])
    assert numbers(rows["sampler"], "dropped_lines") == [0] * len(rows["sampler"])


def test_counters_are_the_kernels(start: Callable[..., Any], namespaces: Any) -> None:
    program = start("sampler", "--interfaces", "eth0", within=namespaces[0])
    time.sleep(0.2)
    send_datagrams(namespaces[0], 50)
    rows = sample(program, 0.2)["port"]
    gained = {field: int(rows[-1][field]) - int(rows[0][field]) for field in ("tx_bytes", "tx_packets")}
    # The first datagram waits for an ARP exchange, and routers are looked for: a few small packets more.
    assert 50 <= gained["tx_packets"] <= 60
    assert 50 * 1042 <= gained["tx_bytes"] <= 50 * 1042 + 10 * 100
    assert {row["interface"] for row in rows} == {"eth0"}
    assert {row["up"] for row in rows} == {"1"}
    assert "marks" not in rows[0]


def test_a_queue_shows_its_backlog_and_drops(start: Callable[..., Any], namespaces: Any) -> None:
    namespaces[0].run("tc qdisc add dev eth0 root handle 1: htb default 1")
    namespaces[0].run("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit burst 2kb cburst 2kb")
    namespaces[0].run("tc qdisc add dev eth0 parent 1:1 bfifo limit 20kb")
    program = start("sampler", "--interfaces", "eth0", "--queues", within=namespaces[0])
    time.sleep(0.1)
    send_datagrams(namespaces[0], 100)
    rows = sample(program, 0.1)["port"]
    assert 10_000 < max(numbers(rows, "qdisc_backlog_bytes")) <= 20 * 1024
    assert 50 < int(rows[-1]["qdisc_drops"]) < 100
    assert int(rows[-1]["qdisc_bytes"]) > 0


def test_the_sampler_reads_another_network_namespace(start: Callable[..., Any], namespaces: Any) -> None:
    rows = sample(start("sampler", "--netns-of-pid", str(namespaces[1].pid)), 0.1)
    assert {row["interface"] for row in rows["port"]} == {"eth0"}
    assert {row["ifindex"] for row in rows["port"]} == {str(ifindex(namespaces[1]))}


def test_tcp_counters_are_of_the_namespace(start: Callable[..., Any], namespaces: Any) -> None:
    rows = sample(start("sampler", "--cpu-period-ms", "100", within=namespaces[0]), 0.3)["tcp"]
    assert numbers(rows, "out_segs") == [0] * len(rows)
    assert set(rows[0]) >= {"retrans_segs", "timeouts", "ce_received"}


def total_ticks() -> int:
    return sum(map(int, Path("/proc/stat").read_text().split()[1:9]))


def test_cpu_time_is_the_machines(start: Callable[..., Any]) -> None:
    ticks_before = total_ticks()
    rows = sample(start("sampler", "--cpu", "--cpu-period-ms", "200"), 1.5)["cpu"]
    ticks_after = total_ticks()
    sums = [sum(int(row[field]) for field in ("busy_ticks", "idle_ticks", "steal_ticks")) for row in rows]
    assert len(sums) >= 7
    assert ticks_before <= sums[0] < sums[-1] <= ticks_after
    assert sums[-1] - sums[0] > (ticks_after - ticks_before) / 2


def test_cpu_is_not_sampled_unless_requested(start: Callable[..., Any]) -> None:
    assert "cpu" not in sample(start("sampler"), 0.1)


ECN_PORT = "<4Q"  # struct ecn_port: packets, bytes, ect_packets, marks


def test_marks_are_those_of_the_maps(start: Callable[..., Any], namespaces: Any, pins: Any) -> None:
    index = ifindex(namespaces[0])
    pins.make("ports", 4, struct.calcsize(ECN_PORT))
    pins.put("ports", struct.pack("<I", index), struct.pack(ECN_PORT, 100, 150_000, 90, 17))
    pins.make("sources", 8, 8)
    for ifindex_of, last_byte, marks in ((index, 1, 12), (index, 2, 5), (index + 1000, 1, 99)):
        pins.put("sources", struct.pack("<I4B", ifindex_of, 10, 77, 0, last_byte), struct.pack("<Q", marks))
    arguments = ("--interfaces", "eth0,lo", "--ecn-maps", str(pins.folder))
    rows = sample(start("sampler", *arguments, within=namespaces[0]), 0.1)
    found = {(row["interface"], row["marks"], row["ecn_packets"]) for row in rows["port"]}
    assert found == {("eth0", "17", "90"), ("lo", "", "")}
    by_source = {(row["ifindex"], row["source"], row["marks"]) for row in rows["marks"]}
    assert by_source == {(str(index), "10.77.0.1", "12"), (str(index), "10.77.0.2", "5")}
    assert len(rows["marks"]) == len(rows["port"])  # two sources, and two ports, at every sample


def test_a_map_of_another_build_is_refused(start: Callable[..., Any], pins: Any) -> None:
    pins.make("ports", 4, 8)
    program = start("sampler", "--name", "tor0", "--ecn-maps", str(pins.folder))
    assert program.status() == 1
    assert "tor0: the eBPF map" in (text := program.errors())
    assert "has keys of 4 bytes and values of 8, expected 4 and 32" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--interfaces", "eth77"], 'there is no "eth77" here; there is: lo, eth0'),
        (["--ecn-maps", "/nowhere"], "cannot open the eBPF map /nowhere/ports: No such file or directory"),
        (["--netns-of-pid", "999999999"], "cannot enter the network namespace of process 999999999"),
    ],
)
def test_a_device_that_cannot_be_sampled_is_named(
    start: Callable[..., Any], namespaces: Any, arguments: list[str], complaint: str
) -> None:
    program = start("sampler", *arguments, within=namespaces[0])
    assert program.status() == 1
    assert complaint in program.errors()


def test_a_link_that_goes_down_is_distinguished_from_an_idle_one(start: Callable[..., Any], namespaces: Any) -> None:
    program = start("sampler", within=namespaces[0])
    time.sleep(0.1)
    namespaces[1].run("ip link set eth0 down")
    time.sleep(1.2)  # the kernel announces changes of a link at most once a second
    namespaces[1].run("ip link set eth0 up")
    rows = sample(program, 1.2)["port"]
    assert [key for key, _ in groupby(row["up"] for row in rows)] == ["1", "0", "1"]
    assert all(row["tx_bytes"] for row in rows)


def test_an_interface_that_goes_is_unknown_until_it_is_back(start: Callable[..., Any], namespaces: Any) -> None:
    program = start("sampler", within=namespaces[0])
    send_datagrams(namespaces[0], 50)
    time.sleep(0.1)
    namespaces[0].run("ip link del eth0")
    time.sleep(0.1)
    namespaces[0].run("ip link add eth0 type veth peer name other")
    rows = sample(program, 0.1)["port"]
    assert [key for key, _ in groupby(bool(row["tx_bytes"]) for row in rows)] == [True, False, True]
    assert int(rows[0]["tx_packets"]) >= 0
    assert {row["tx_packets"] for row in rows[-3:]} == {"0"}


def test_sigterm_ends_it_with_all_lines_written(start: Callable[..., Any], namespaces: Any) -> None:
    program = start("sampler", "--period-ms", "10", within=namespaces[0])
    time.sleep(0.3)
    program.terminate()
    assert len(parse(program.lines())["port"]) >= 10
    assert program.status() == 0


def test_bad_usage_prints_no_record(start: Callable[..., Any]) -> None:
    program = start("sampler", "--period-ms", "0")
    assert program.lines() == []
    assert program.status() == 2
    assert "--period-ms" in program.errors()
