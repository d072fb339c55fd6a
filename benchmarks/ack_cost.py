# SPDX-License-Identifier: Apache-2.0
"""What an ACK costs with eBPF dcqcn and with the kernel's own cubic: same veth, same paced rate, turn by turn.

    python benchmarks/ack_cost.py [--rounds N] [--seconds S] [--json]

Both pace at the same rate (dcqcn by R_max, cubic by SO_MAX_PACING_RATE), so both send the same bursts and get the same
ACKs. The whole machine's CPU time per ACK is compared, and beside it the time inside dcqcn's programs alone, as the
kernel's eBPF statistics count it. Needs root, iperf3 and an otherwise idle machine.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parents[1] / "build/bin"
TRANSPORT, OBJECTS = str(PROGRAMS / "transport"), str(PROGRAMS / "bpf_objects")
RATE_MBPS = 800
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def pair() -> Iterator[tuple[str, str]]:
    """Two namespaces joined by a veth pair, and dcqcn loaded."""
    names = [f"rbb-{uuid.uuid4().hex[:6]}-{end}" for end in (1, 2)]
    owner = names[0]
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "eth0", "netns", names[1])
        for number, name in enumerate(names, 1):
            run("ip", "-n", name, "addr", "add", f"10.77.9.{number}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up", "gso_max_size", "4600")
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_ecn=1")
        run(TRANSPORT, "load", "dcqcn", "--owner", owner)
        rate = [f"R_max_mbps={RATE_MBPS}", "T_us=2000", "F=1", "cnp_gap_us=1500", "alpha_timer_us=15000"]
        run("ip", "netns", "exec", names[0], TRANSPORT, "set", "dcqcn", *rate)
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        run(TRANSPORT, "unload", "dcqcn", "--owner", owner)


@contextlib.contextmanager
def program_statistics() -> Iterator[None]:
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


def busy_s() -> float:
    """CPU time that the machine has spent on anything, in seconds."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def segments_in(namespace: str) -> int:
    """TCP segments that the namespace has received: for a sender, ACKs."""
    lines = run("ip", "netns", "exec", namespace, "cat", "/proc/net/snmp").splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("InSegs")])


def program_ns(name: str) -> tuple[int, int]:
    """Nanoseconds spent in, and calls of, the eBPF program `name`."""
    found = [each for each in json.loads(run(OBJECTS, "list"))["prog"] if each["name"].startswith(name)]
    return sum(each["run_time_ns"] for each in found), sum(each["run_count"] for each in found)


def transfer(sender: str, receiver: str, control: str, seconds: float) -> dict[str, float]:
    """One paced transfer: CPU microseconds per ACK, with what an idle machine spends in that time taken off."""
    idle_from = busy_s()
    time.sleep(1)
    idle = busy_s() - idle_from
    server = subprocess.Popen(["ip", "netns", "exec", receiver, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    before, acks = busy_s(), segments_in(sender)
    words = ["iperf3", "-c", "10.77.9.2", "-t", str(seconds), "-C", control, "--fq-rate", f"{RATE_MBPS}M", "-J"]
    sent = json.loads(run("ip", "netns", "exec", sender, *words))["end"]["sum_received"]
    spent, acks = busy_s() - before - idle * seconds, segments_in(sender) - acks
    server.wait()
    return {"us_per_ack": spent / acks * 1e6, "acks": acks, "mbps": sent["bits_per_second"] / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    taken: dict[str, list[dict[str, float]]] = {"rb_dcqcn": [], "cubic": []}
    with pair() as (sender, receiver):
        for number in range(options.rounds * 2):
            control = list(taken)[number % 2]
            taken[control].append(transfer(sender, receiver, control, options.seconds))
        with program_statistics():
            transfer(sender, receiver, "rb_dcqcn", 2)
            spent_ns, calls = program_ns("dcqcn_cong_cont")
    medians = {name: statistics.median(each["us_per_ack"] for each in rounds) for name, rounds in taken.items()}
    result: dict[str, Any] = {
        "us_per_ack": medians,
        "ratio": medians["rb_dcqcn"] / medians["cubic"],
        "program_ns_per_ack": spent_ns / calls if calls else None,
        "rounds": taken,
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, rounds in taken.items():
        spread = ", ".join(f"{each['us_per_ack']:.2f}" for each in rounds)
        rate = statistics.median(each["mbps"] for each in rounds)
        print(f"{name:9} {medians[name]:6.2f} us of CPU per ACK, whole stack, at {rate:.0f} Mbit/s ({spread})")
    print(f"ratio     {result['ratio']:6.2f} dcqcn / cubic")
    print(f"program   {result['program_ns_per_ack']:6.0f} ns per ACK inside dcqcn's cong_control")


if __name__ == "__main__":
    main()
