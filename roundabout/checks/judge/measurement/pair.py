# SPDX-License-Identifier: Apache-2.0
"""Measurements of one flow on an unshaped pair of hosts: throughput and CPU cost. Contestants take turns."""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from roundabout.checks.judge import programs
from roundabout.checks.judge.measurement.iperf_flows import WARM_UP_S, StuckError, send_flows
from roundabout.checks.judge.measurement.sandbox import NetnsHost, transport_arguments, unshaped_pair
from roundabout.runner.transports import TOOL
from roundabout.spec.transports import Transport

PACED_MBPS = 800.0
PACED, UNPACED = (
    ("--fq-rate", f"{PACED_MBPS:.0f}M"),
    ("-b", f"{PACED_MBPS:.0f}M"),
)  # iperf3's options: pacing by the kernel, and by iperf3
IDLE_S = 1.0
SMALL_BURSTS = ("gso_max_size", "4600")  # as on the lab's links, with one ACK for three segments

Samples = dict[str, list[float]]
"""Values by contestant, one for each round. Rounds in which the flow got stuck are left out."""


def measure_throughput(contestants: Mapping[str, Transport], rounds: int, seconds: int) -> Samples:
    """Measure the throughput, in Gbit/s, of one flow that only the machine limits. Transports must be loaded."""
    found: Samples = {name: [] for name in contestants}
    with unshaped_pair() as (sender, receiver):
        for _ in range(rounds):
            for name, transport in contestants.items():
                _prepare(transport, (sender, receiver), None)
                with suppress(StuckError):
                    found[name].append(send_flows([sender], receiver, 1, seconds).total_gbps)
    return found


class Cost(NamedTuple):
    """The CPU time, in us, of both ends and of interrupts, minus that of an idle machine."""

    per_ack: float
    per_megabyte: float


def measure_cost(
    contestants: Mapping[str, Transport], rounds: int, seconds: int, unpaced: Collection[str] = ()
) -> dict[str, list[Cost]]:
    """Measure the CPU cost of sending at a fixed rate, by contestant and round.

    The kernel paces the flow, so that all contestants have the same bursts and ACKs. iperf3 limits the rate of the
    `unpaced` contestants, whose bursts and ACKs differ. Results are valid only on an otherwise idle machine.
    """
    found: dict[str, list[Cost]] = {name: [] for name in contestants}
    with unshaped_pair(*SMALL_BURSTS) as (sender, receiver):
        for _ in range(rounds):
            for name, transport in contestants.items():
                _prepare(transport, (sender, receiver), PACED_MBPS)
                with suppress(StuckError):
                    found[name].append(_cost(sender, receiver, seconds, UNPACED if name in unpaced else PACED))
    return found


def measure_program_time(
    contestants: Mapping[str, Transport], own: Mapping[str, Sequence[int]], seconds: int
) -> Samples:
    """Measure the time, in ns per ACK, inside each contestant's eBPF programs.

    `own` has the programs' ids by contestant. Linux's own congestion controls have no programs.
    """
    found: Samples = {name: [] for name in contestants}
    with unshaped_pair(*SMALL_BURSTS) as (sender, receiver), programs.enable_statistics():
        for name, transport in contestants.items():
            if own.get(name):
                _prepare(transport, (sender, receiver), PACED_MBPS)
                before_ns, before = _spent_ns(own[name]), sender.received_segments()
                with suppress(StuckError):
                    send_flows([sender], receiver, 1, seconds, *PACED)
                    found[name].append((_spent_ns(own[name]) - before_ns) / max(1, sender.received_segments() - before))
    return found


def _prepare(transport: Transport, places: Sequence[NetnsHost], rate_mbps: float | None) -> None:
    for place in places:
        place.use_congestion_control(transport.kernel_name)
        if values := transport_arguments(transport, rate_mbps):
            place.run(str(TOOL), "set", transport.name, *values)


def _cost(sender: NetnsHost, receiver: NetnsHost, seconds: int, options: Sequence[str]) -> Cost:
    idle_from_s, begun_s = _softirq_s(), time.monotonic()
    time.sleep(IDLE_S)
    idle = (_softirq_s() - idle_from_s) / (time.monotonic() - begun_s)
    busy_from_s, begun_s, before = _softirq_s(), time.monotonic(), sender.received_segments()
    flows = send_flows([sender], receiver, 1, seconds, *options)
    softirq_s = _softirq_s() - busy_from_s - idle * (time.monotonic() - begun_s)
    spent_us = (flows.cpu_s + softirq_s) * 1e6
    megabytes = flows.total_gbps * (WARM_UP_S + seconds) * 1e3 / 8
    return Cost(spent_us / max(1, sender.received_segments() - before), spent_us / max(1, megabytes))


def _softirq_s() -> float:
    """Return the CPU time that the machine has spent in interrupts, soft ones included."""
    fields = Path("/proc/stat").read_text().split(maxsplit=8)
    return (int(fields[6]) + int(fields[7])) / os.sysconf("SC_CLK_TCK")


def _spent_ns(ids: Sequence[int]) -> int:
    now = programs.program_times_ns()
    return sum(now.get(each, 0) for each in ids)
