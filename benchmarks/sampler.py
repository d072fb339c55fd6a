# SPDX-License-Identifier: Apache-2.0
"""Cost of sampling: six lab hosts' samplers at once, against loops that only sleep to the same instants. Needs root.

    python benchmarks/sampler.py [--seconds N] [--period-ms N] [--short] [--json]

The samplers run as a trial runs them, with DCQCN loaded, in a lab that is otherwise idle; the peers are six processes
of clock_nanosleep to absolute instants and nothing else. CPU time is what the kernel charged each process (wait4). A
period is the time between two samples' beginnings, as recorded.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options
from benchmarks.shared.machine import hold_machine
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.runner.tables.rows import Samples
from roundabout.runner.trial.sampler import host_sampler
from roundabout.spec import load_topology
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.network import paths

NAME = process_name("bench-sampler")
HOSTS = 6

SLEEPER = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
int main(int count, char **words) {
  long period_ns = atol(words[count - 1]) * 1000000;
  struct timespec at;
  prctl(PR_SET_TIMERSLACK, 1);
  clock_gettime(CLOCK_MONOTONIC, &at);
  while (1) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
    at.tv_nsec += period_ns;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
  }
}
"""


@contextmanager
def lab() -> Iterator[Lab]:
    """Yield a lab of six hosts with their transport, as in a run."""
    built = Lab.create(load_topology("dumbbell-3x3"), NAME, verify=False)
    transport = [str(paths.program_path("transport"))]
    objects = ["--objects", str(paths.BUILD / "bpf")]
    try:
        subprocess.run([*transport, "load", "dcqcn", "--owner", NAME, *objects], check=True, capture_output=True)
        for pid in built.pids().values():
            settings = [*transport, "set", "dcqcn", "T_us=125"]
            subprocess.run(["nsenter", "-t", str(pid), "-n", *settings], check=True, capture_output=True)
        yield built
    finally:
        subprocess.run([*transport, "unload", "dcqcn", "--owner", NAME], check=True, capture_output=True)
        Lab.remove(NAME)


def sampler(lab: Lab, host: Host, period_ms: int) -> list[str]:
    """Return the command that samples a host's namespace as a trial does, to be run on this machine."""
    words = host_sampler(host, lab.capabilities(), period_ms)
    pid = lab.pids()[host.name]
    return [str(paths.program_path("sampler")), "--netns-of-pid", str(pid), *words[1:]]


def measure_cpu(commands: Sequence[Sequence[str]], seconds: float) -> tuple[list[float], list[list[str]]]:
    """Run the commands at once; return the CPU seconds a second of each, and its output."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder, str(number)) for number in range(len(commands))]
        running = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output.open("w"))
            for command, output in zip(commands, outputs, strict=True)
        ]
        begin = time.monotonic()
        time.sleep(seconds)
        for process in running:
            process.send_signal(signal.SIGTERM)
        lasted = time.monotonic() - begin
        usages = [os.wait4(process.pid, 0)[2] for process in running]
        shares = [(usage.ru_utime + usage.ru_stime) / lasted for usage in usages]
        return shares, [output.read_text().splitlines() for output in outputs]


def main() -> None:
    """Measure samplers and sleeping loops, and print the figures."""
    options = read_options(__doc__, {"seconds": 0.5}, seconds=20.0, period_ms=10)
    with hold_machine(), lab() as built, tempfile.TemporaryDirectory() as folder:
        sleeper = Path(folder, "sleeper")
        subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", sleeper], input=SLEEPER, text=True, check=True)
        commands = [sampler(built, host, options.period_ms) for host in built.hosts.values()]
        ours, printed = measure_cpu(commands, options.seconds)
        peers, _ = measure_cpu([[str(sleeper), str(options.period_ms)]] * HOSTS, options.seconds)
    samples = [Samples(lines, "a sampler").columns for lines in printed]
    periods_ms = np.concatenate([np.diff(each["port"]["before_ns"]) for each in samples]) / 1e6
    result: dict[str, Any] = {
        "samplers_cores": sum(ours),
        "sleepers_cores": sum(peers),
        "ratio": sum(ours) / sum(peers),
        "period_median_ms": float(np.median(periods_ms)),
        "period_p99_ms": float(np.percentile(periods_ms, 99)),
        "period_max_ms": float(periods_ms.max()),
        "missed": sum(int(each["sampler"]["missed"][-1]) for each in samples),
        "counters": len(samples[0]["counter"]["counter"]) if "counter" in samples[0] else 0,
    }
    print_result(options, result, format_result(result))


def format_result(result: dict[str, Any]) -> Iterator[str]:
    yield f"{HOSTS} samplers   {result['samplers_cores']:7.2%} of one core, {result['counters']} device counters each"
    yield f"{HOSTS} sleepers   {result['sleepers_cores']:7.2%} of one core"
    yield f"ratio        {result['ratio']:7.2f} samplers / sleepers"
    longest = f"{result['period_p99_ms']:.2f} ms p99, {result['period_max_ms']:.2f} ms at most"
    yield f"period       {result['period_median_ms']:7.2f} ms median, {longest}; {result['missed']} deadlines missed"


if __name__ == "__main__":
    main()
