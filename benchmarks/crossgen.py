# SPDX-License-Identifier: Apache-2.0
"""Traffic of crossgen against iperf3, against a bare sleep, and against its plan; each in one run.

    python benchmarks/crossgen.py [--only NAME,...] [--seconds S] [--short] [--json]

    plan        planning 10 million flows: time and memory
    throughput  web-search sizes at a load above capacity on an unshaped veth pair, in turns with iperf3 -P 1, 2, 4, 8
    lateness    of launches at 50 % load, and of a loop of clock_nanosleep(TIMER_ABSTIME) of the same priority beside it
    load        achieved against planned at 10, 30, 50, 70, 90 % of a 250 Mbit/s link (25 Gbit/s at 1:100)
    bursts      on the wire of that link at 10, 20, 30 %: their period, and how much of it they carry
    histogram   at 24 Gbit/s (scaled), of what is injected and delivered: the skewness of both kinds of load

The shaped link is where a router's traffic leaves towards the sink, as in the lab. Needs root, iperf3, a C compiler and
an otherwise idle machine.
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.machine import hold_machine
from roundabout.runner.machine.process_leftovers import process_name

CROSSGEN = str(Path(__file__).parents[1] / "build/bin/crossgen")
SECRET = f"secret {uuid.uuid4().hex}\n"
SINK = "10.77.20.2"
LINK_GBPS = 0.25
SCALE = 0.01
PERIOD_NS = 10_000_000
WIDTH_NS = 1_000_000

# A short version of `cyclictest`: prints the lateness of each wake-up in nanoseconds, at the launcher's priority.
SLEEPER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
int main(int argc, char **argv) {
  static long late[1 << 20];
  struct timespec until, now;
  struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  int i, count = atoi(argv[1]), period = atoi(argv[2]);
  prctl(PR_SET_TIMERSLACK, 1);
  sched_setscheduler(0, SCHED_FIFO, &lowest);
  clock_gettime(CLOCK_MONOTONIC, &until);
  for (i = 0; i < count && i < 1 << 20; i++) {
    until.tv_nsec += period;
    while (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    late[i] = (now.tv_sec - until.tv_sec) * 1000000000L + now.tv_nsec - until.tv_nsec;
  }
  for (i = 0; i < count && i < 1 << 20; i++) printf("%ld\n", late[i]);
}
"""

# Runs where the packets pass, until its standard input closes; 33 is SO_RCVBUFFORCE, 35 SO_TIMESTAMPNS.
CAPTURE = r"""
import os, select, socket, struct, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)
tap.setsockopt(socket.SOL_SOCKET, 35, 1)
tap.bind(("eth0", 3))
os.write(1, b"!")
seen = []
while 0 not in (ready := select.select([0, tap], [], [])[0]):
    length, times, _, _ = tap.recvmsg_into([bytearray(1)], 64, socket.MSG_TRUNC)
    seconds, nanos = struct.unpack("qq", times[0][2])
    seen.append(struct.pack("<qq", seconds * 10**9 + nanos, length))
sys.stdout.buffer.write(b"".join(seen))
"""


def run(*argv: str) -> str:
    """Return the standard output of a command. Raises CalledProcessError if it fails."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


class RoutedPath:
    """A sender, a router and a sink in namespaces of their own. The router's link to the sink may be shaped."""

    def __init__(self, names: list[str]) -> None:
        self.sender, self.router, self.sink = names

    def inside(self, name: str, *argv: str) -> list[str]:
        """Return the command that runs `argv` in the namespace `name`."""
        return ["ip", "netns", "exec", name, *argv]

    def shape(self, gbps: float) -> None:
        """Limit the router's link to the sink to a rate."""
        for name, device in ((self.sender, "eth0"), (self.router, "eth1")):
            run("ip", "-n", name, "link", "set", device, "gso_max_size", "4600")
        tc = ["tc", "-n", self.router]
        rate = f"{gbps * 1e9:.0f}bit"
        run(*tc, "qdisc", "replace", "dev", "eth1", "root", "handle", "1:", "htb", "default", "1")
        run(*tc, *f"class add dev eth1 parent 1: classid 1:1 htb rate {rate} burst 6k cburst 6k".split())
        run(*tc, "qdisc", "add", "dev", "eth1", "parent", "1:1", "pfifo", "limit", "4000")


@contextlib.contextmanager
def path() -> Iterator[RoutedPath]:
    """Yield a path of sender, router and sink, which is removed afterwards."""
    names = [process_name(f"bench-path-{end}") for end in ("sender", "router", "sink")]
    sender, router, sink = names
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", "eth0", "netns", sender, "type", "veth", "peer", "eth0", "netns", router)
        run("ip", "link", "add", "eth1", "netns", router, "type", "veth", "peer", "eth0", "netns", sink)
        ends = ((sender, "eth0", "10.77.10.2"), (router, "eth0", "10.77.10.1"), (router, "eth1", "10.77.20.1"))
        for name, device, address in (*ends, (sink, "eth0", SINK)):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
        run("ip", "-n", sender, "route", "add", "default", "via", "10.77.10.1")
        run("ip", "-n", sink, "route", "add", "default", "via", "10.77.20.1")
        run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for name in names:
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
        yield RoutedPath(names)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextlib.contextmanager
def pair() -> Iterator[tuple[str, str]]:
    """Yield two namespaces joined by one unshaped veth pair."""
    names = [process_name(f"bench-pair-{end}") for end in ("sender", "sink")]
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "eth0", "netns", names[1])
        for name, address in zip(names, ("10.77.20.1", SINK), strict=True):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def plan(file: str, gbps: float, seconds: float, *options: str) -> dict[str, Any]:
    """Plan a load into a file, and return its summary."""
    words = ["--load-gbps", gbps, "--duration-s", seconds, "--output", file, "--json"]
    reported: dict[str, Any] = json.loads(run(CROSSGEN, "plan", *map(str, words), *options))
    return reported


def send(
    sender: str, sink: str, file: str, *options: str, beside: Callable[[int], Any] = lambda _: None
) -> tuple[dict[str, Any], list[dict[str, Any]], Any]:
    """Send a load from one namespace to the other; return the summary, the flows, and the result of `beside`."""
    words = ["ip", "netns", "exec", sink, CROSSGEN, "sink", "--bind", f"{SINK}:0"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdin
        assert receiver.stdout
        receiver.stdin.write(SECRET)
        receiver.stdin.flush()
        to = "sink=" + json.loads(receiver.stdout.readline())["address"]
        words = [
            "ip",
            "netns",
            "exec",
            sender,
            CROSSGEN,
            "send",
            "--load",
            file,
            "--to",
            to,
            *options,
        ]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin
            assert program.stdout
            program.stdin.write(SECRET)
            program.stdin.flush()
            program.stdout.readline()
            start_ns = time.monotonic_ns() + 300_000_000
            program.stdin.write(f"start {start_ns}\n")
            program.stdin.flush()
            result = beside(start_ns)
            events = [json.loads(line) for line in program.stdout]
            program.stdin.close()
        receiver.stdin.close()
    return events[0], [event for event in events if event["event"] == "flow"], result


def percentile(values: list[float], percent: float) -> float:
    """Return the value that `percent` of all values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def measure_plan(folder: str, _seconds: float, short: bool) -> dict[str, Any]:
    """Return time and memory of planning 10 million flows."""
    file = f"{folder}/many-flows.load"
    before = time.monotonic()
    reported = plan(file, 8 * 2_434_900 * 1e4 / 1e9, 1.1 if short else 1_000.1)
    took_s = time.monotonic() - before
    os.unlink(file)
    memory_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # of the largest child so far
    error = reported["offered_gbps_standard_error"]
    off = abs(reported["offered_gbps"] - reported["plan"]["asked_gbps"]) / error
    return {"flows": reported["flows"], "took_s": took_s, "memory_mb": memory_mb, "off_in_standard_errors": off}


def iperf3_gbps(sender: str, sink: str, parallel: int, seconds: float) -> float:
    """Return the rate that iperf3 reaches with `parallel` connections, Gbit/s."""
    with subprocess.Popen(["ip", "netns", "exec", sink, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL):
        time.sleep(0.3)
        words = ["iperf3", "-c", SINK, "-t", str(max(1, int(seconds))), "-O", "1", "-P", str(parallel), "-J"]
        reported = json.loads(run("ip", "netns", "exec", sender, *words))
    return float(reported["end"]["sum_received"]["bits_per_second"]) / 1e9


def measure_throughput(folder: str, seconds: float, short: bool) -> dict[str, Any]:
    """Return the rates of crossgen and of iperf3 on an unshaped link, Gbit/s, in turns."""
    file = f"{folder}/above.load"
    plan(file, 200, seconds + 1)
    achieved: list[float] = []
    iperf3: dict[int, list[float]] = {}
    with pair() as (sender, sink):
        for parallel in (1,) if short else (1, 2, 4, 8):
            iperf3.setdefault(parallel, []).append(iperf3_gbps(sender, sink, parallel, seconds))
            reported, _, _ = send(sender, sink, file, "--warm-up-s", "1", "--drain-s", "0", "--most-results", "0")
            achieved.append(reported["achieved_gbps"])
            assert reported["schedule_held"] is False
    best = max(statistics.median(each) for each in iperf3.values())
    ours = statistics.median(achieved)
    return {"crossgen_gbps": achieved, "iperf3_gbps": iperf3, "ratio": ours / best}


def measure_lateness(folder: str, seconds: float, _short: bool) -> dict[str, Any]:
    """Return percentiles of how late crossgen launches flows and a sleeping loop wakes."""
    sleeper = f"{folder}/sleeper"
    subprocess.run(["cc", "-O2", "-xc", "-", "-o", sleeper], input=SLEEPER, check=True, text=True)
    file = f"{folder}/half.load"
    plan(file, LINK_GBPS / 2, seconds, "--scale-sizes", str(SCALE))

    def sleep(start_ns: int) -> list[float]:
        time.sleep(max(0, start_ns - time.monotonic_ns()) / 1e9)
        return [float(line) for line in run(sleeper, str(int(seconds * 1000)), "1000000").split()]

    with path() as made:
        made.shape(LINK_GBPS)
        reported, flows, slept = send(made.sender, made.sink, file, beside=sleep)
    late = [flow["start_ns"] - flow["intended_ns"] for flow in flows]
    figures = {
        name: {f"p{percent}_us": percentile(values, percent) / 1e3 for percent in (50, 99)}
        for name, values in (("crossgen", late), ("sleep", slept))
    }
    ratio = figures["crossgen"]["p99_us"] / figures["sleep"]["p99_us"]
    return {**figures, "real_time_priority": reported["real_time_priority"], "p99_ratio": ratio}


def measure_load(folder: str, seconds: float, short: bool) -> dict[str, Any]:
    """Return achieved against planned load at several shares of the shaped link's rate."""
    file = f"{folder}/share.load"
    rows = []
    with path() as made:
        made.shape(LINK_GBPS)
        for percent in (50,) if short else (10, 30, 50, 70, 90):
            requested = LINK_GBPS * percent / 100
            planned = plan(file, requested, seconds + 1, "--scale-sizes", str(SCALE), "--seed", str(percent))
            reported, _, _ = send(made.sender, made.sink, file, "--warm-up-s", "1")
            off = (planned["offered_gbps"] - requested) / planned["offered_gbps_standard_error"]
            row = {key: reported[key] for key in ("offered_gbps", "achieved_gbps", "schedule_held")}
            ratio = reported["achieved_gbps"] / reported["offered_gbps"]
            rows.append({"percent": percent, **row, "achieved_over_planned": ratio, "planned_off": off})
    worst = max(abs(row["achieved_over_planned"] - 1) for row in rows)
    return {"rows": rows, "worst_error": worst}


class Capture:
    """The packets at a namespace's eth0 until it is stopped: [monotonic nanoseconds, bytes] of each IPv4 packet."""

    def __init__(self, namespace: str) -> None:
        pipe = subprocess.PIPE
        words = ["ip", "netns", "exec", namespace, sys.executable, "-c", CAPTURE]
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe)
        assert self.process.stdout
        self.process.stdout.read(1)  # it listens

    def stop(self) -> list[tuple[int, int]]:
        """End the capture, and return the packets."""
        offset_ns = time.time_ns() - time.monotonic_ns()
        data, _ = self.process.communicate()
        return [(at_ns - offset_ns, length) for at_ns, length in struct.iter_unpack("<qq", data)]


def injected(capture: Capture, start_ns: int, seconds: float) -> list[tuple[int, int]]:
    """Return the data packets captured while the load ran, without pure ACKs and handshakes."""
    time.sleep(max(0, start_ns - time.monotonic_ns()) / 1e9 + seconds + 0.05)
    packets = [(at_ns - start_ns, length) for at_ns, length in capture.stop() if length > 100]
    return [packet for packet in packets if 0 <= packet[0] < seconds * 1e9]


def burst_figures(packets: list[tuple[int, int]]) -> dict[str, float]:
    """Return the bursts' period, ms, and the burst window's share of the bytes in the median period."""
    onsets: dict[int, int] = {}
    for at_ns, _ in packets:
        onsets.setdefault(at_ns // PERIOD_NS, at_ns)
    periods = sorted(onsets)
    slope_ns = statistics.linear_regression(periods, [onsets[each] for each in periods]).slope
    delay_ns = min(at_ns - number * PERIOD_NS for number, at_ns in onsets.items())
    window: dict[int, int] = {}
    whole: dict[int, int] = {}
    for at_ns, length in packets:
        number, offset_ns = divmod(at_ns - int(delay_ns), PERIOD_NS)
        whole[number] = whole.get(number, 0) + length
        if offset_ns < WIDTH_NS:
            window[number] = window.get(number, 0) + length
    shares = [window.get(number, 0) / whole[number] for number in whole]
    return {
        "period_ms": slope_ns / 1e6,
        "share_of_all": sum(window.values()) / sum(whole.values()),
        "share_in_median_period": statistics.median(shares),
    }


def measure_bursts(folder: str, seconds: float, short: bool) -> dict[str, Any]:
    """Return period and share of bursts on the wire at several loads."""
    file = f"{folder}/bursts.load"
    rows = []
    with path() as made:
        made.shape(LINK_GBPS)
        for percent in (30,) if short else (10, 20, 30):
            burst = ["--scale-sizes", str(SCALE), "--burst-width-us", "1000"]
            plan(file, LINK_GBPS * percent / 100, seconds, *burst)
            capture = Capture(made.sink)
            watch = lambda start_ns, capture=capture: injected(capture, start_ns, seconds)  # noqa: E731
            reported, _, packets = send(made.sender, made.sink, file, beside=watch)
            rows.append({"percent": percent, "schedule_held": reported["schedule_held"], **burst_figures(packets)})
    return {"rows": rows, "expected_share": 0.3}


def skewness(values: list[float]) -> float:
    """Return Bowley's skewness of the 5th and 95th percentile.

    It is from -1 to 1, and rare stalls of the machine do not affect it.
    """
    low, middle, high = (percentile(values, percent) for percent in (5, 50, 95))
    return (high + low - 2 * middle) / (high - low)


def rates_gbps(packets: list[tuple[int, int]], bin_ns: int, seconds: float) -> list[float]:
    """Return the rate in each bin of time, Gbit/s."""
    bins = [0] * int(seconds * 1e9 // bin_ns)
    for at_ns, length in packets:
        if at_ns // bin_ns < len(bins):
            bins[at_ns // bin_ns] += length
    return [8 * each / bin_ns for each in bins]


def measure_histogram(folder: str, seconds: float, short: bool) -> dict[str, Any]:
    """Return figures of rates in bins of 1 ms at the sender and behind the bottleneck, for both kinds of load."""
    file = f"{folder}/histogram.load"
    figures: dict[str, Any] = {}
    with path() as made:
        made.shape(LINK_GBPS)
        kinds = {"burst": ["--burst-width-us", "1000"], "consistent": list[str]()}
        places = {"injected": made.sender, "delivered": made.sink}
        for kind in ["burst"] if short else kinds:
            plan(file, 24 * SCALE, seconds, "--scale-sizes", str(SCALE), *kinds[kind])
            for place, namespace in places.items():
                capture = Capture(namespace)
                watch = lambda at_ns, capture=capture: injected(capture, at_ns, seconds)  # noqa: E731
                _, _, packets = send(made.sender, made.sink, file, "--drain-s", "1", beside=watch)
                rates = rates_gbps(packets, WIDTH_NS, seconds)
                row = {"skewness": skewness(rates), "mean_gbps": statistics.fmean(rates)}
                figures[f"{kind}_{place}"] = row
    return figures


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "plan": measure_plan,
    "throughput": measure_throughput,
    "lateness": measure_lateness,
    "load": measure_load,
    "bursts": measure_bursts,
    "histogram": measure_histogram,
}


def main() -> None:
    """Measure crossgen, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MEASURES))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument(
        "--short", action="store_true", help="about a second, to see that it runs; its figures mean nothing"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    reported = {}
    with hold_machine(), tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            reported[name] = MEASURES[name](folder, 0.5 if options.short else options.seconds, options.short)
            if not options.json:
                print(f"{name:11}", json.dumps(reported[name]), flush=True)
    if options.json:
        print(json.dumps(reported, indent=2))


if __name__ == "__main__":
    main()
