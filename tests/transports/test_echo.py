# SPDX-License-Identifier: Apache-2.0
"""Reaction points count as echoed what the switches marked: the notification point neither latches nor forgets."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec import load_topology
from roundabout.testbeds.lab import Lab
from tests.running import job_document

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

PHASES = [{"name": "forward", "compute_ms": 50}, {"name": "allreduce", "bytes": 4_000_000, "alone_ms": 100}]
JOBS = {"j1": ("s0", "s2"), "j2": ("s1", "s3")}
ITERATIONS = 10


@pytest.fixture
def lab() -> Iterator[Lab]:
    name = process_name("test-echo")
    built = Lab.create(load_topology("dumbbell-2x2"), name)
    try:
        yield built
    finally:
        Lab.remove(name)


def on(lab: Lab, host: str, *argv: str) -> list[str]:
    return ["nsenter", "--target", str(lab.pids()[host]), "--net", *argv]


def play(lab: Lab, replay: str) -> None:
    """Both jobs at once, so that they meet on the bottleneck."""
    workers = []
    for port, (job, hosts) in enumerate(JOBS.items(), 29500):
        there = [(host, lab.hosts[host].address, port) for host in hosts]
        document = json.dumps(job_document(job, there, PHASES, iterations=ITERATIONS))
        for rank, host in enumerate(hosts):
            words = ["--rank", str(rank), "--job", document]
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            workers.append(subprocess.Popen(on(lab, host, replay, *words), **pipes))
    for worker in workers:
        worker.stdin.write("secret open-sesame\n")
        worker.stdin.flush()
    for worker in workers:
        assert json.loads(worker.stdout.readline())["event"] == "ready"
    with open("/proc/uptime") as uptime:
        start_ns = int((float(uptime.read().split()[0]) + 0.5) * 1e9)
    for worker in workers:
        worker.stdin.write(f"start {start_ns}\n")
        worker.stdin.flush()
    for worker in workers:
        assert '"done"' in worker.stdout.read().splitlines()[-1]
        assert worker.wait(10) == 0
        worker.stdin.close()
        worker.stdout.close()


def counters_of_jobs(lab: Lab, tools: Any, *changes: str) -> list[dict[str, float]]:
    """Play both jobs with the changed parameters, and return the counters of each host's reaction points."""
    transport = str(tools.build / "bin/transport")
    parameters = ["T_us=2000", "F=1", "byte_counter_bytes=0", "R_AI_mbps=3.5", "R_HAI_mbps=9", "R_min_mbps=5"]
    parameters += ["R_max_mbps=500", "g=0.03", "alpha_timer_us=15000", "cnp_gap_us=1500", *changes]
    for host in lab.hosts:
        tools.run(*on(lab, host, "sysctl", "-qw", "net.ipv4.tcp_ecn=1", "net.ipv4.tcp_congestion_control=rb_dcqcn"))
        tools.run(*on(lab, host, transport, "set", "dcqcn", *parameters))
        # Bursts as short as in trials: then there is an ACK for every third segment, and ACKs meet full queues too.
        tools.run(*on(lab, host, "ip", "link", "set", "eth0", "gso_max_size", "4600"))
    play(lab, str(tools.build / "bin/replay"))
    return [json.loads(tools.run(*on(lab, host, transport, "get", "dcqcn")).stdout)["counters"] for host in lab.hosts]


def test_cnps_act_after_their_delay(lab: Lab, dcqcn: str, tools: Any) -> None:
    delay_us = 5000
    counters = counters_of_jobs(lab, tools, f"cnp_delay_us={delay_us}")
    cuts = sum(each["cnps"] for each in counters)
    assert cuts > 20
    # An ACK comes each few hundred us; a flow that pauses in between gets its CNPs later, or forgets them. Those
    # between two ACKs that echo marks count from their own times, and act at the later ACK if that is overdue.
    assert 0.9 * delay_us < sum(each["held_us"] for each in counters) / cuts < 1.6 * delay_us
    seen = lab.echo_times()
    assert seen.echoes > 20
    # A port marks what leaves it, so an echo waits for programs alone: 9 us on a quick machine that is idle.
    assert 0 < seen.total_us / seen.echoes < 20_000


def test_echoes_are_the_marks_made(lab: Lab, dcqcn: str, tools: Any) -> None:
    before = sum(port.marks for port in lab.counters().values())
    counters = counters_of_jobs(lab, tools)
    marks = sum(port.marks for port in lab.counters().values()) - before
    echoes = sum(counter["segments_marked"] for counter in counters)
    assert marks > 200
    assert echoes == pytest.approx(marks, rel=0.05)
    # At most one CNP per flow and gap, and no more than there are echoes.
    for counter in counters:
        assert 0 < counter["cnps"] <= min(counter["segments_marked"], counter["active_us"] / 1500 + 1)
        assert counter["losses"] == 0
