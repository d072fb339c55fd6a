# SPDX-License-Identifier: Apache-2.0
"""A scrape of 24 lab hosts, all scraped at once through the relay, against samplers started anew. Needs root.

    python benchmarks/scrape.py [--rounds N] [--seconds OF_CPU] [--short] [--json]

The peer is an exporter without a process of its own on each host: it enters every host and runs `sampler` there for one
sample, all at once too. They are taken in turn, so that a busy machine affects both alike. Then the CPU time of relay
and exporters is measured, while idle, and while all are scraped as often as Prometheus does.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options, take_turns
from benchmarks.shared.machine import hold_machine
from roundabout.dashboards.exporters import ExporterPool
from roundabout.dashboards.prometheus import SCRAPE_INTERVAL_S
from roundabout.dashboards.relay import Relay, run_relay
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.runner.testbed import ExporterTarget
from roundabout.spec import load_topology
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.exporter_targets import lab_targets

NAME = process_name("bench-scrape")
SCALE = 200
DIRECT = build_opener(ProxyHandler({}))


def through_relay(relay: Relay, hosts: Sequence[ExporterTarget], pool: ThreadPoolExecutor) -> int:
    """Fetch the metrics of all hosts at once through the relay, and return the number of bytes."""

    def fetch(host: ExporterTarget) -> int:
        with DIRECT.open(f"{relay.url}/metrics/{host.site}/{host.node}") as answer:
            return len(answer.read())

    return sum(pool.map(fetch, hosts))


def start_samplers(hosts: Sequence[ExporterTarget], pool: ThreadPoolExecutor) -> int:
    """Run a new sampler on all hosts at once, for one sample, and return the number of bytes."""

    def sample(host: ExporterTarget) -> int:
        channel = host.connect().start(host.argv[3:])
        channel.close_stdin()
        said = b"".join(iter(channel.read, b""))
        status, why = channel.result()
        if status != 0:
            sys.exit(f"error: the sampler of {host.node}: {why}")
        return len(said)

    return sum(pool.map(sample, hosts))


def duration_s(work: Callable[[], int]) -> float:
    """Return the elapsed seconds of a call of `work`."""
    begin = time.monotonic()
    if not work():
        sys.exit("error: nothing was answered")
    return time.monotonic() - begin


def cpu_s(pids: Sequence[int]) -> dict[int, float]:
    """Return the CPU seconds of each of these processes that still exists, by id."""
    used = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            used[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def descendants() -> list[int]:
    """Return the ids of this process and of all its descendants: exporters and samplers."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return list(found)


def cost(seconds: float, scrape: Callable[[], int] | None) -> float:
    """Return the CPU seconds per second while idle, or while `scrape` is called once every EVERY_S."""
    before, begin = cpu_s(descendants()), time.monotonic()
    while (left_s := begin + seconds - time.monotonic()) > 0:
        if scrape:
            scrape()
        time.sleep(min(SCRAPE_INTERVAL_S, left_s))
    spent_s = sum(after_s - before[pid] for pid, after_s in cpu_s(list(before)).items())
    return spent_s / (time.monotonic() - begin)


def measure(hosts: Sequence[ExporterTarget], rounds: int, seconds: float) -> dict[str, Any]:
    """Return durations and CPU costs of scraping these hosts."""
    with (
        run_relay(ExporterPool(lambda: hosts), list, str) as relay,
        ThreadPoolExecutor(len(hosts)) as pool,
    ):
        contenders: dict[str, Callable[[], int]] = {
            "relay": lambda: through_relay(relay, hosts, pool),
            "anew": lambda: start_samplers(hosts, pool),
        }
        for work in contenders.values():
            work()  # the first finds no connection, and no page in memory
        taken = take_turns({name: partial(duration_s, work) for name, work in contenders.items()}, rounds)
        medians_ms = {name: 1e3 * statistics.median(each) for name, each in taken.items()}
        return {
            "hosts": len(hosts),
            "rounds": rounds,
            "median_ms": medians_ms,
            "most_ms": {name: 1e3 * max(each) for name, each in taken.items()},
            "of_anew": medians_ms["relay"] / medians_ms["anew"],
            "idle_cpus": cost(seconds, None),
            "scraped_cpus": cost(seconds, contenders["relay"]),
        }


def main() -> None:
    """Measure scrapes, and print them."""
    options = read_options(__doc__, {"rounds": 1, "seconds": 0.5}, rounds=10, seconds=15.0)
    topology = load_topology("dumbbell-2x2" if options.short else "cluster-24")
    with hold_machine():
        lab = Lab.create(topology, NAME, scale=SCALE, verify=False)
        try:
            hosts = [each for each in lab_targets(lab) if each.node in lab.hosts]
            result = measure(hosts, options.rounds, options.seconds)
        finally:
            Lab.remove(NAME)
    median_ms, most_ms = result["median_ms"], result["most_ms"]
    lines = [
        f"{result['hosts']} hosts, {name:5}: median {median_ms[name]:6.1f} ms, most {most_ms[name]:6.1f} ms"
        for name in median_ms
    ]
    lines.append(f"the relay takes {result['of_anew']:.2f} of the time of samplers started anew")
    lines.append(
        f"CPUs: {result['idle_cpus']:.3f} idle, {result['scraped_cpus']:.3f} scraped every {SCRAPE_INTERVAL_S} s"
    )
    print_result(options, result, lines)


if __name__ == "__main__":
    main()
