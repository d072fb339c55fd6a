# SPDX-License-Identifier: Apache-2.0
"""Flows between hosts, sent by iperf3, and their results."""

import json
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from analysis.statistics.fairness import jain_index
from roundabout.checks.judge.measurement.sandbox import NetnsHost
from roundabout.core.errors import RoundaboutError

PORT = 5201
EVERY_S = 0.1
WARM_UP_S = 1
TRANSFER_TIMEOUT_S = 30.0  # time limit of a transfer beyond its own duration, for a busy machine


class StuckError(RoundaboutError):
    """Error for flows that did not complete."""


@dataclass(frozen=True)
class FlowResults:
    """The results of flows on a shared path after the warm-up.

    `gbps` has the payload rate of each flow, and `course_gbps` the total rate in each interval of `EVERY_S`.
    """

    gbps: tuple[float, ...]
    course_gbps: tuple[float, ...]
    rtt_ms: float
    windows_kb: tuple[tuple[float, ...], ...]
    retransmitted: int
    sent_bytes: int
    cpu_s: float  # CPU time of both ends' processes, including the warm-up

    @property
    def total_gbps(self) -> float:
        """Return the total rate of all flows at the receiver, including data that was queued at the end."""
        return sum(self.gbps)

    @property
    def jain(self) -> float:
        """Return Jain's fairness index of the flows' rates."""
        return jain_index(self.gbps)

    @property
    def dip(self) -> float:
        """Return the 10th percentile of the total rate per `EVERY_S`, divided by the mean: 1 for a constant rate."""
        mean = statistics.fmean(self.course_gbps) if self.course_gbps else 0.0
        ordered = sorted(self.course_gbps)
        return ordered[(len(ordered) - 1) // 10] / mean if mean else 0.0

    @property
    def window_fall(self) -> float | None:
        """Return the median factor by which the window is reduced. None with fewer than two reductions."""
        falls = [
            after / before for window in self.windows_kb for before, after in pairwise(window) if 0 < after < before
        ]
        return statistics.median(falls) if len(falls) > 1 else None


def send_flows(
    senders: Sequence[NetnsHost], receiver: NetnsHost, flows: int, seconds: int, *options: str
) -> FlowResults:
    """Send over `flows` connections, spread among `senders`, for `seconds` after a warm-up.

    `options` are further arguments of iperf3. Raises StuckError if the flows do not end, and RoundaboutError if iperf3
    fails.
    """
    shares = [len(range(number, flows, len(senders))) for number in range(len(senders))]
    words = ["-t", str(seconds), "-O", str(WARM_UP_S), "-i", f"{EVERY_S:g}", "-J", *options]
    clients = []
    with ExitStack() as stack:
        for number, (sender, share) in enumerate(zip(senders, shares, strict=True)):
            if share:
                port = PORT + number
                stack.enter_context(_server(receiver, port))
                argv = ["iperf3", "-c", receiver.address, "-p", str(port), "-P", str(share), *words]
                clients.append(stack.enter_context(sender.start(*argv)))
        lasts_s = WARM_UP_S + seconds
        return _flows([_read_client(client, lasts_s + TRANSFER_TIMEOUT_S) for client in clients], lasts_s)


@contextmanager
def _server(place: NetnsHost, port: int) -> Iterator[None]:
    with place.start("iperf3", "-s", "-1", "-p", str(port), "--forceflush") as server:
        assert server.stdout
        for line in server.stdout:
            if "listening" in line:
                break
        else:
            assert server.stderr
            raise RoundaboutError(f"iperf3 -s: {server.stderr.read().strip()}")
        yield


def _read_client(client: "subprocess.Popen[str]", limit_s: float) -> dict[str, Any]:
    try:
        out, errors = client.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise StuckError(f"found flows that did not end within {limit_s:.0f} s, expected iperf3 to") from None
    try:
        reports: dict[str, Any] = json.loads(out)
    except ValueError:
        raise RoundaboutError(f"iperf3: {errors.strip() or out.strip()}") from None
    if "error" in reports:
        raise RoundaboutError(f"iperf3: {reports['error']}")
    return reports


def _flows(reports: Sequence[dict[str, Any]], lasts_s: float) -> FlowResults:
    ends = [stream for each in reports for stream in each["end"]["streams"]]
    intervals_by_client = [[one for one in each["intervals"] if not one["sum"]["omitted"]] for each in reports]
    intervals = [stream for own in intervals_by_client for one in own for stream in one["streams"]]
    sums = zip(*([one["sum"]["bits_per_second"] / 1e9 for one in own] for own in intervals_by_client), strict=False)
    sockets: dict[tuple[int, int], list[float]] = {}
    for number, own in enumerate(intervals_by_client):
        for one in own:
            for stream in one["streams"]:
                sockets.setdefault((number, stream["socket"]), []).append(stream.get("snd_cwnd", 0) / 1e3)
    used = [each["end"]["cpu_utilization_percent"] for each in reports]
    round_trips = [stream["rtt"] / 1e3 for stream in intervals if stream.get("rtt")]
    return FlowResults(
        gbps=tuple(stream["receiver"]["bits_per_second"] / 1e9 for stream in ends),
        course_gbps=tuple(map(sum, sums)),
        rtt_ms=statistics.median(round_trips) if round_trips else 0.0,
        windows_kb=tuple(map(tuple, sockets.values())),
        retransmitted=sum(stream["sender"].get("retransmits", 0) for stream in ends),
        sent_bytes=sum(stream["sender"]["bytes"] for stream in ends),
        cpu_s=sum(each["host_total"] + each["remote_total"] for each in used) / 100 * lasts_s,
    )
