# SPDX-License-Identifier: Apache-2.0
"""Traffic of crossgen against iperf3, against a bare sleep, and against its plan; each in one run.

    python benchmarks/crossgen.py [--only NAME,...] [--seconds S] [--short] [--json]

    plan        planning 10 million flows: time and memory
    throughput  web-search sizes at a load above capacity on an unshaped veth pair, in turns with iperf3 -P 1, 2, 4, 8
    lateness    of launches at 125 Mbit/s (12.5 Gbit/s at 1:100), and of a loop of clock_nanosleep(TIMER_ABSTIME) of
                the same priority beside it

Needs root, iperf3, a C compiler and an otherwise idle machine.
"""

import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options
from benchmarks.shared.machine import hold_machine
from roundabout.runner.machine.process_leftovers import process_name

CROSSGEN = str(Path(__file__).parents[1] / "build/bin/crossgen")
SECRET = f"secret {uuid.uuid4().hex}\n"
SINK = "10.77.20.2"
LOAD_GBPS = 0.125  # 12.5 Gbit/s at 1:100
SCALE = 0.01

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


def run(*argv: str) -> str:
    """Return the standard output of a command. Raises CalledProcessError if it fails."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


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
        words = ["ip", "netns", "exec", sender, CROSSGEN, "send", "--load", file, "--to", to, *options]
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
    plan(file, LOAD_GBPS, seconds, "--scale-sizes", str(SCALE))

    def sleep(start_ns: int) -> list[float]:
        time.sleep(max(0, start_ns - time.monotonic_ns()) / 1e9)
        return [float(line) for line in run(sleeper, str(int(seconds * 1000)), "1000000").split()]

    with pair() as (sender, sink):
        reported, flows, slept = send(sender, sink, file, beside=sleep)
    late = [flow["start_ns"] - flow["intended_ns"] for flow in flows]
    figures = {
        name: {f"p{percent}_us": percentile(values, percent) / 1e3 for percent in (50, 99)}
        for name, values in (("crossgen", late), ("sleep", slept))
    }
    ratio = figures["crossgen"]["p99_us"] / figures["sleep"]["p99_us"]
    return {**figures, "real_time_priority": reported["real_time_priority"], "p99_ratio": ratio}


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "plan": measure_plan,
    "throughput": measure_throughput,
    "lateness": measure_lateness,
}


def main() -> None:
    """Measure crossgen, and print the figures."""
    options = read_options(__doc__, {"seconds": 0.5}, only=",".join(MEASURES), seconds=10.0)
    with hold_machine(), tempfile.TemporaryDirectory() as folder:
        found = {name: MEASURES[name](folder, options.seconds, options.short) for name in options.only.split(",")}
    print_result(options, found, (f"{name:11} {json.dumps(each)}" for name, each in found.items()))


if __name__ == "__main__":
    main()
