# SPDX-License-Identifier: Apache-2.0
"""TCP of this machine's kernel beside the packet-level model's, at a port of the same rate and queue. Needs root.

    sudo python benchmarks/packet_tcp_kernel.py [--seconds TIME] [--repeats N] [--only WORDS] [--short] [--json]

The kernel's flows go through a lab of two hosts and a switch, and the model's through the same port: rate, queue in
bytes, thresholds, segment size, round trip and the receiver's window are the lab's. Segmentation offload is the
sender's own: its device takes bursts apart, as a NIC does, so that the port sees single packets. Goodput is in Mbit/s,
the window is the mean over time and flows, in segments, and marks (drops, where the queue is drop-tail) are a second.
A ratio is the model's mean over the kernel's; beside it stand the least and the largest that any two repeats give.

Other load shall not change what the kernel does. Threads that hold sockets run before all others, and receivers
acknowledge without waiting for the program that reads. A repeat in which this program could not run for GAP_MS is
measured again.
"""

import ctypes
import os
import platform
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pyroute2 import IPRoute

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options
from benchmarks.shared.machine import hold_machine
from benchmarks.shared.tcp import ALGORITHMS, MTU, connection, port, send_forever
from roundabout.models.packets import Engine, Fabric
from roundabout.models.packets.structures import PS_PER_MS, PS_PER_US, Structure, make_structure
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec.frames import AROUND_BYTES, frame_bytes, payload_share
from roundabout.spec.pfc import CONTROL_BYTES
from roundabout.spec.topology import Topology
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.calibration.calibration import NEVER_MARK, Ecn
from roundabout.testbeds.lab.ecn import marking
from roundabout.testbeds.lab.network import cc_allowlist, port_queues
from roundabout.testbeds.lab.network.namespaces import run_inside
from roundabout.testbeds.lab.network.port_queues import HTB_DATA, Queue

ROOT = Path(__file__).parents[1]
PR_SET_PDEATHSIG = 1  # of prctl(2)
FRAME = frame_bytes(MTU)
SENDER, SWITCH, RECEIVER = "a", "tor", "b"
# Width of the even spread of the model's time from an ACK to what it lets go. The gaps between packets that leave the
# lab's port have a standard deviation of 15 us (tcpdump at its receiver): that of the difference of two such times.
JITTER_US = 36.0
START_US = 1000.0  # within which the model's flows begin, by the seed; the lab's begin as their threads get to run
DEEP_BYTES = 1 << 26  # of a queue that marks: it never drops
HOST_GBPS = 10.0  # of the model's hosts; the lab's send over veth, which takes about as long for a packet
WARM_UP_S = 1.0  # the receivers' windows have grown, and slow start is over
SAMPLE_S = 0.005
GAP_MS = 20.0  # as long as a round trip: a longer pause of this machine would show in the flows
MAX_TRIES = 3  # of a repeat that the machine disturbs
TRIES_UNTIL_S = 450.0  # afterwards a disturbed repeat is kept: all takes less than ten minutes
READ_BYTES = 1 << 17  # unread before a receiver's ACKs wait for its program (SO_RCVLOWAT)
SYSCTLS = {
    "tcp_no_metrics_save": "1",
    "tcp_rmem": "4096 524288 524288",  # several windows of the longest queue, and soon grown
    "tcp_wmem": "4096 4194304 33554432",
    "tcp_early_retrans": "3",
}
RTO_MIN_MS, RTO_INITIAL_MS = 200, 1000  # Linux'
LIMITS = {"goodput_mbps": 0.02, "cwnd": 0.10, "signals_per_s": 0.10}


@dataclass(frozen=True)
class Case:
    """Flows of one algorithm through one port, whose queue's sizes are `factor` times the shortest ones."""

    mbps: float
    factor: int
    queue: str
    algorithm: str
    flows: int

    @property
    def limit_bytes(self) -> int:
        """Return the length of the port's queue."""
        return 50_000 * self.factor if self.queue == "drop-tail" else DEEP_BYTES

    @property
    def ecn(self) -> Ecn:
        """Return the port's thresholds: a step at 20 packets, or marks between 10 and 40, times the factor."""
        packets = self.factor * MTU
        return {
            "drop-tail": NEVER_MARK,
            "step": Ecn(kmin_bytes=20 * packets, kmax_bytes=20 * packets, pmax=1),
            "thresholds": Ecn(kmin_bytes=10 * packets, kmax_bytes=40 * packets, pmax=0.2),
        }[self.queue]

    @property
    def has_ecn(self) -> bool:
        """Return True if the hosts negotiate ECN, as hosts of a lab do on queues that mark."""
        return self.queue != "drop-tail"


QUEUES = ("thresholds", "step", "drop-tail")
LINES = ((20.0, 1), (100.0, 2))
"""Rates in Mbit/s, each with the factor of its queues: some 20 to 70 packets under way. They are measured at once."""


# --- the kernel ------------------------------------------------------------------------------------------------------


def read_tcp_info(end: socket.socket) -> dict[str, int]:
    """Return what is used of Linux' struct tcp_info (include/uapi/linux/tcp.h)."""
    raw = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    words = struct.unpack_from("=24I", raw, 8)
    acked = struct.unpack_from("=Q", raw, 120)[0]
    return {"window": words[14], "rtt_us": words[15], "cwnd": words[18], "resent": words[23], "acked": acked}


def run_first(policy: int = os.SCHED_FIFO) -> None:
    """Let this thread run before all others: segments wait for a thread that was stopped while it held their socket."""
    os.sched_setscheduler(0, policy, os.sched_param(int(policy == os.SCHED_FIFO)))


class Flow:
    """A TCP connection that always has something to send."""

    def __init__(self, lab: Lab, pids: Mapping[str, int]) -> None:
        with run_inside(pids[RECEIVER], lambda: socket.create_server((lab.hosts[RECEIVER].address, 0))) as listener:
            self.sender = run_inside(pids[SENDER], lambda: socket.create_connection(listener.getsockname(), timeout=5))
            self.receiver, _ = listener.accept()
        self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)
        for end in (self.sender, self.receiver):
            end.settimeout(None)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]

    def start(self) -> None:
        """Start the threads that send and receive."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Reset the connection, so that nothing of it is still delivered."""
        for end in (self.sender, self.receiver):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self.sender.close()
        self.receiver.close()

    def _send(self) -> None:
        run_first()
        chunk = bytes(1 << 16)
        with suppress(OSError):
            while True:
                self.sender.send(chunk)

    def _receive(self) -> None:
        run_first()
        chunk = bytearray(1 << 18)
        with suppress(OSError):
            while self.receiver.recv_into(chunk):
                pass


@contextmanager
def lab_of(mbps: float, name: str) -> Iterator[Lab]:
    """Make a lab of two hosts, whose links carry a rate, headers included. It measures them within 3 %."""
    rates = {"line_rate_gbps": mbps / 1e3, "payload_rate_gbps": mbps / 1e3 * payload_share(MTU)}
    links = [{"name": end, "ends": [end, SWITCH], **rates} for end in (SENDER, RECEIVER)]
    topology = Topology.model_validate(
        {"name": "tcp", "about": "Two hosts", **rates, "queue": "lossless"}
        | {"hosts": [SENDER, RECEIVER], "switches": [SWITCH], "links": links}
    )
    lab = Lab.create(topology, name, scale=1)
    try:
        yield lab
    finally:
        Lab.remove(name)


def prepare(lab: Lab, pids: Mapping[str, int], case: Case) -> None:
    """Set the queue of the ports and TCP of the hosts, as a trial in a lab does."""
    calibration = lab.record.calibration
    queues = {
        port: Queue(each.drain_bytes_per_s, case.limit_bytes)
        for port, each in port_queues.port_queues(lab.layout, calibration, 1).items()
    }
    port_queues.update_queues(queues, pids, calibration.burst_bytes)
    marking.set_thresholds(lab.files, queues, case.ecn)
    algorithm = "rb_dctcp" if case.algorithm == "dctcp" else case.algorithm
    own = {**SYSCTLS, "tcp_ecn": str(int(case.has_ecn)), "tcp_congestion_control": algorithm}

    def set_sysctls() -> None:
        for name, value in own.items():
            Path("/proc/sys/net/ipv4", name).write_text(value, encoding="ascii")

    for host in (SENDER, RECEIVER):
        run_inside(pids[host], set_sysctls)
        inside = ["nsenter", "-t", str(pids[host]), "-n"]
        subprocess.run([*inside, "ethtool", "-K", "eth0", "tso", "off", "gso", "off"], check=True, capture_output=True)


def read_queue(pid: int, ifindex: int) -> dict[str, int]:
    """Return the backlog and drops of the queue of data at a port of the switch `pid`."""

    def read() -> dict[str, int]:
        with IPRoute() as netlink:
            data = next(each for each in netlink.get_qdiscs(index=ifindex) if each["parent"] == HTB_DATA)
        stats = data.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")
        return {"backlog": stats["backlog"], "drops": stats["drops"]}

    return run_inside(pid, read)


def measure_kernel(lab: Lab, case: Case, seconds: float) -> dict[str, Any]:
    """Return the figures of one repeat in the lab."""
    pids = lab.live_pids()
    port = next(each for each in lab.ports if each.towards == RECEIVER)
    queue = partial(read_queue, pids[SWITCH], port.ifindex)
    flows = [Flow(lab, pids) for _ in range(case.flows)]

    def count() -> tuple[float, list[dict[str, int]], int, dict[str, int]]:
        marks = lab.counters()[port.ifindex].marks
        return time.monotonic(), [read_tcp_info(each.sender) for each in flows], marks, queue()

    states: list[tuple[float, float, float, float]] = []
    run_first()
    try:
        begin = time.monotonic()
        for flow in flows:
            flow.start()
        before = None
        while (now := time.monotonic() - begin) < WARM_UP_S + seconds:
            if before is None and now >= WARM_UP_S:
                before = count()
            infos = [read_tcp_info(each.sender) for each in flows]
            cwnd, rtt_us = (statistics.fmean(info[name] for info in infos) for name in ("cwnd", "rtt_us"))
            states.append((time.monotonic() - begin, cwnd, rtt_us, queue()["backlog"]))
            time.sleep(SAMPLE_S)
        after = count()
        window = max(read_tcp_info(each.receiver)["window"] for each in flows)
    finally:
        run_first(os.SCHED_OTHER)
        for flow in flows:
            flow.stop()
    assert before
    took = after[0] - before[0]
    trace = np.array(states)
    late = trace[trace[:, 0] > before[0] - begin]
    acked = np.array([new["acked"] - old["acked"] for old, new in zip(before[1], after[1], strict=True)])
    return {
        "goodput_mbps": float(acked.sum()) * 8 / took / 1e6,
        "cwnd": float(late[:, 1].mean()),
        "srtt_us": float(late[:, 2].mean()),
        "queue_bytes": float(late[:, 3].mean()),
        "signals_per_s": (after[3]["drops"] - before[3]["drops"] + after[2] - before[2]) / took,
        "resent_per_s": sum(new["resent"] - old["resent"] for old, new in zip(before[1], after[1], strict=True)) / took,
        "fairness": float(acked.sum() ** 2 / (len(acked) * (acked**2).sum())),
        "gap_ms": float(np.diff(late[:, 0]).max() * 1e3),
        "window_bytes": window,
        "trace": trace[:, :2].tolist(),
    }


# --- the model -------------------------------------------------------------------------------------------------------


def model_ports(case: Case, hop_us: float) -> list[Structure]:
    """Return the ports from the sender to the switch, back, from the switch to the receiver, and back.

    Two properties of the lab's port have no name in the model. Its shaper (HTB) lets a packet go, and then waits for as
    long as the link would take: a packet arrives when its time on the link begins, and the delay is shorter by it. And
    the program that marks reckons from the bytes that waited when the last packet came, without what was still on the
    link then: as an ACK brings the next packets when one goes, its queue is one packet shorter than it is.
    """
    hop_ps = round(hop_us * PS_PER_US)
    common = {"delay_ps": hop_ps, "line_bytes_per_s": HOST_GBPS * 1e9 / 8}
    gbps, ecn = case.mbps / 1e3, case.ecn
    own: dict[str, float] = {
        **common,
        "queue_bytes": case.limit_bytes,
        "delay_ps": hop_ps - round((FRAME + AROUND_BYTES) * 8 / gbps * 1e3),
    }
    if case.has_ecn:
        own |= {"kmin_bytes": ecn.kmin_bytes + FRAME, "kmax_bytes": ecn.kmax_bytes + FRAME, "pmax": ecn.pmax}
    return [port(HOST_GBPS, 0, **common), port(gbps, **common), port(gbps, **own), port(HOST_GBPS, 1, **common)]


def measure_model(case: Case, seconds: float, hop_us: float, window_bytes: int, seed: int) -> dict[str, Any]:
    """Return the figures of one repeat in the model."""
    nic = make_structure("nic_plan", control_bytes=CONTROL_BYTES, around_bytes=AROUND_BYTES, seed=seed)
    engine = Engine(nic, model_ports(case, hop_us), 2, PS_PER_MS)
    plan = connection(
        case.algorithm,
        window_bytes=window_bytes,
        first_window_bytes=Fabric().tcp.first_window_bytes,
        grown_window_bytes=window_bytes,
        rto_min_ps=RTO_MIN_MS * PS_PER_MS,
        rto_initial_ps=RTO_INITIAL_MS * PS_PER_MS,
        jitter_ps=round(JITTER_US * PS_PER_US),
        is_ecn=case.has_ecn or case.algorithm == "dctcp",
        restarts_after_idle=1,
    )
    pairs = [engine.add_connection([0, 2], [3, 1], (0, 1), plan) for _ in range(case.flows)]
    starts_us = np.random.default_rng(seed).uniform(0, START_US, case.flows)
    for pair, start_us in zip(pairs, starts_us, strict=True):
        send_forever(engine, pair, round(start_us * PS_PER_US))
    states: list[tuple[float, float, float]] = []
    steps = round((WARM_UP_S + seconds) * 1e3)
    first = round(WARM_UP_S * 1e3)
    acked: list[np.ndarray[Any, Any]] = []
    resent: list[int] = []
    for at_ms in range(1, steps + 1):
        engine.run(at_ms * PS_PER_MS, while_jobs=False)
        found = [engine.connection_result(pair) for pair in pairs]
        cwnd, srtt_ps = (statistics.fmean(getattr(each, name) for each in found) for name in ("cwnd", "srtt_ps"))
        states.append((at_ms / 1e3, cwnd, srtt_ps / 1e6))
        if at_ms in (first, steps):
            results = [engine.pair_result(pair) for pair in pairs]
            acked.append(np.array([each.acked for each in results]))
            resent.append(sum(each.resent for each in results))
    counts = {name: values[first:, 2] for name, values in engine.samples().ports.items()}
    trace = np.array(states)
    gained = acked[1] - acked[0]
    return {
        "goodput_mbps": float(gained.sum()) * 8 / seconds / 1e6,
        "cwnd": float(trace[first:, 1].mean()),
        "srtt_us": float(trace[first:, 2].mean()),
        "queue_bytes": float(counts["backlog_bytes"].mean()),
        "signals_per_s": float(np.ptp(counts["drops"]) + np.ptp(counts["marks"])) / seconds,
        "resent_per_s": (resent[1] - resent[0]) / seconds,
        "fairness": float(gained.sum() ** 2 / (len(gained) * (gained**2).sum())),
        "trace": trace[:, :2].tolist(),
    }


# --- both ------------------------------------------------------------------------------------------------------------


def compare(lab: Lab, case: Case, seconds: float, repeats: int, tries_until: float) -> dict[str, Any]:
    """Return the figures of each repeat of a case, kernel and model. Disturbed ones are repeated until an instant."""
    prepare(lab, lab.live_pids(), case)
    hop_us = max(each.base_rtt_us for each in lab.record.measured) / 4
    kernel, model = [], []
    for repeat in range(repeats):
        tries = [measure_kernel(lab, case, seconds)]
        while tries[-1]["gap_ms"] > GAP_MS and len(tries) < MAX_TRIES and time.monotonic() < tries_until:
            tries.append(measure_kernel(lab, case, seconds))
        kernel.append(min(tries, key=lambda each: float(each["gap_ms"])))
        model.append(measure_model(case, seconds, hop_us, kernel[-1]["window_bytes"], seed=repeat + 1))
    return {"case": asdict(case), "kernel": kernel, "model": model}


@dataclass(frozen=True)
class Ratio:
    """A figure of the model over the kernel's: of the means, and of the repeats that differ most."""

    kernel: float
    model: float
    least: float
    most: float

    @property
    def value(self) -> float:
        """Return the ratio of the means. Where neither has any, they agree."""
        return self.model / self.kernel if self.kernel else 1.0 if not self.model else float("inf")

    def verdict(self, limit: float) -> str:
        """Return whether the ratio is within a limit of 1, or if not, whether the repeats leave it open."""
        if abs(self.value - 1) <= limit:
            return "pass"
        return "fail" if self.least > 1 + limit or self.most < 1 - limit else "inconclusive"


def ratio_of(found: Mapping[str, Any], name: str) -> Ratio:
    """Return the ratio of a figure of a case."""
    kernel, model = ([each[name] for each in found[side]] for side in ("kernel", "model"))
    least, most = (
        numerator / denominator if denominator else float("inf") if numerator else 1.0
        for numerator, denominator in ((min(model), max(kernel)), (max(model), min(kernel)))
    )
    return Ratio(statistics.fmean(kernel), statistics.fmean(model), least, most)


def verdict_of(found: Mapping[str, Any]) -> str:
    """Return a case's verdict, and which figures do not pass."""
    verdicts = {name: ratio_of(found, name).verdict(limit) for name, limit in LIMITS.items()}
    words = {"goodput_mbps": "goodput", "cwnd": "window", "signals_per_s": "marks"}
    missed = {each: [words[name] for name in verdicts if verdicts[name] == each] for each in ("fail", "inconclusive")}
    return ", ".join(f"{each}: {' and '.join(names)}" for each, names in missed.items() if names) or "pass"


def format_table(found: list[dict[str, Any]], options: Namespace) -> Iterator[str]:
    """Yield the lines of the table as docs/results/packet-level.md has it."""
    described = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    revision = subprocess.run(described, capture_output=True, text=True, check=False).stdout.strip()
    processor = re.search("model name.*: (.*)", Path("/proc/cpuinfo").read_text())
    machine = f"{os.cpu_count()} x {processor[1] if processor else platform.machine()}"
    measured = f"{options.repeats} repeats of {options.seconds:g} s"
    yield f"{datetime.now(UTC):%Y-%m-%d}, revision {revision}, Linux {platform.release()}, {machine}; {measured}"
    gaps = [each["gap_ms"] for case in found for each in case["kernel"]]
    kept = sum(gap <= GAP_MS for gap in gaps)
    yield f"Repeats in which the machine stood still for no longer than {GAP_MS:g} ms: {kept} of {len(gaps)}"
    yield ""
    goodput, window = ("goodput, kernel", "model", "ratio"), ("window, kernel", "model", "ratio")
    yield row_of("Mbit/s", "queue", "", "flows", *goodput, *window, "marks or drops/s, kernel", "model", "ratio", "")
    yield "|" + "---|" * 14
    for each in found:
        case = Case(**each["case"])
        cells = [f"{case.mbps:g}", case.queue, case.algorithm, str(case.flows)]
        for name, digits, of_ratio in (("goodput_mbps", 2, 3), ("cwnd", 2, 2), ("signals_per_s", 1, 2)):
            ratio = ratio_of(each, name)
            spread = f"{ratio.value:.{of_ratio}f} ({ratio.least:.{of_ratio}f} to {ratio.most:.{of_ratio}f})"
            cells += [f"{ratio.kernel:.{digits}f}", f"{ratio.model:.{digits}f}", spread]
        yield row_of(*cells, verdict_of(each))


def format_traces(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of windows of single flows over the first second, of the first repeats."""
    instants = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0])
    yield ""
    yield row_of("Mbit/s", "queue", "", "", *(f"{at:g} s" for at in instants))
    yield "|" + "---|" * (4 + len(instants))
    for each in found:
        case = Case(**each["case"])
        for side in ("kernel", "model") if case.flows == 1 else ():
            times, windows = np.array(each[side][0]["trace"]).T
            shown = [f"{windows[max(np.searchsorted(times, at) - 1, 0)]:.0f}" for at in instants]
            yield row_of(f"{case.mbps:g}", case.queue, case.algorithm, side, *shown)


def row_of(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def compare_line(line: tuple[float, int], cases: list[Case], options: Namespace, owner: str) -> list[dict[str, Any]]:
    """Return the figures of all cases of a line, measured in a lab called `owner`."""
    tries_until = time.monotonic() + TRIES_UNTIL_S
    transport = [str(ROOT / "build/bin/transport")]
    load = [*transport, "load", "dctcp", "--owner", owner, "--objects", str(ROOT / "build/bpf")]
    unload = [*transport, "unload", "dctcp", "--owner", owner]
    found = []
    with ExitStack() as stack:
        for name in ("reno", "cubic"):
            cc_allowlist.allow(name, owner)
            stack.callback(cc_allowlist.disallow, name, owner)
        subprocess.run(load, check=True, capture_output=True)
        stack.callback(partial(subprocess.run, unload, check=True, capture_output=True))
        lab = stack.enter_context(lab_of(line[0], owner))
        for case in cases:
            found.append(compare(lab, case, options.seconds, options.repeats, tries_until))
            print(f"{line[0]:g} Mbit/s, {len(found)} of {len(cases)}: {verdict_of(found[-1])}", file=sys.stderr)
    return found


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. `roundabout clean` then removes its lab."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Compare all cases, and print the tables."""
    short = {"seconds": 0.3, "repeats": 1, "only": "20 step 1"}
    options = read_options(__doc__, short, seconds=5.5, repeats=3, only="")
    words = options.only.split()
    cases = [Case(*line, *rest) for line, *rest in product(LINES, QUEUES, ALGORITHMS, (1, 8))]
    cases = [each for each in cases if set(words) <= {f"{each.mbps:g}", each.queue, each.algorithm, str(each.flows)}]
    of_lines = {line: [each for each in cases if (each.mbps, each.factor) == line] for line in LINES}
    # A process each, so that one line's threads do not wait for the other's.
    with hold_machine(), ProcessPoolExecutor(len(LINES), initializer=die_with_parent) as pool:
        waiting = [
            pool.submit(compare_line, line, own, options, process_name(f"bench-tcp-{round(line[0])}"))
            for line, own in of_lines.items()
            if own
        ]
        found = [each for future in waiting for each in future.result()]
    passed = sum(verdict_of(each) == "pass" for each in found)
    ratio = statistics.geometric_mean(ratio_of(each, "cwnd").value for each in found)
    summary = f"of {len(found)} cases {passed} pass; mean window, model / kernel, geometric mean: {ratio:.3f}"
    print_result(options, found, (*format_table(found, options), *format_traces(found), "", summary))


if __name__ == "__main__":
    main()
