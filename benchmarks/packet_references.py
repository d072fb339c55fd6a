# SPDX-License-Identifier: Apache-2.0
"""The packet-level model beside published results that state all of their parameters.

    python benchmarks/packet_references.py [--short] [--json]

- DCTCP's queue (Alizadeh et al., SIGCOMM'10, section 3.3): its largest and smallest length and its period, by the
  paper's equations, at the parameters of its Figure 12: 10 Gbit/s, a round trip of 100 us, K = 40 packets, g = 1/16.
- DCTCP over two bottlenecks (the same paper, Figure 17): 10 and 20 senders at one switch, 10 at the next; throughputs
  of the paper's testbed, and of ns-3 as its examples/tcp/dctcp-example.cc states them.
- Mean windows of Reno and CUBIC by the share of packets lost (RFC 9438, Tables 1 and 2, and the equations of theirs).

Segments are sent one by one, without offload: the published results have none. Each is acknowledged in the first case,
and every second one in the others, as their sources say or do not care.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared import tcp
from benchmarks.shared.command import print_result, read_options
from roundabout.models.packets import Engine
from roundabout.models.packets.structures import PS_PER_MS, PS_PER_US, Structure, make_structure
from roundabout.spec.frames import AROUND_BYTES, payload_share, segment_bytes
from roundabout.spec.pfc import CONTROL_BYTES

FRAME = tcp.MTU + 14
"""Bytes of a full packet in a queue, as interfaces count it."""
SIGCOMM10_MBPS = {"S1": 46, "S2": 475, "S3": 54}
"""Figure 17, on Broadcom Triumph and Scorpion switches: K is 20 packets at 1 Gbit/s and 65 at 10."""
NS3_MBPS = {"S1": 23, "S2": 471, "S3": 74}
"""dctcp-example.cc, by its own words: RED marks 2 % at most from 20 to 60 packets, and from 50 to 150 at 10 Gbit/s."""


class Marking(NamedTuple):
    """Thresholds in packets, and the share that is marked below the upper one."""

    kmin: float
    kmax: float
    pmax: float


def step(packets: float) -> Marking:
    return Marking(packets, packets, 1.0)


def port(gbps: float, delay_us: float, host: int = -1, marking: Marking | None = None, loss: float = 0) -> Structure:
    marks = {"kmin_bytes": marking.kmin, "kmax_bytes": marking.kmax} if marking else {}
    thresholds = {name: round(packets * FRAME) for name, packets in marks.items()}
    pmax = marking.pmax if marking else 0
    return tcp.port(gbps, host, delay_ps=round(delay_us * PS_PER_US), pmax=pmax, loss=loss, **thresholds)


def connection(algorithm: str, ack_segments: int) -> Structure:
    return tcp.connection(
        algorithm,
        hystart=0,
        tso_bytes=segment_bytes(tcp.MTU),
        write_bytes=1 << 20,
        window_bytes=1 << 34,
        initial_window=10,
        rto_min_ps=200 * PS_PER_MS,
        delayed_ack_ps=40 * PS_PER_MS,
        ack_segments=ack_segments,
        jitter_ps=PS_PER_US,
    )


class Flow(NamedTuple):
    """A connection that always has something to send, over ports there and back."""

    out: Sequence[int]
    back: Sequence[int]
    hosts: tuple[int, int]


class Network:
    """Ports in pairs, and connections over them."""

    def __init__(self, ports: Sequence[Structure], hosts: int, sample_us: float, seed: int = 1) -> None:
        nic = make_structure("nic_plan", control_bytes=CONTROL_BYTES, around_bytes=AROUND_BYTES, seed=seed)
        self.engine = Engine(nic, ports, hosts, round(sample_us * PS_PER_US))
        self.pairs: list[int] = []

    def send(self, flow: Flow, algorithm: str, begins_ms: float, ack_segments: int = 2) -> None:
        pair = self.engine.add_connection(flow.out, flow.back, flow.hosts, connection(algorithm, ack_segments))
        tcp.send_forever(self.engine, pair, round(begins_ms * PS_PER_MS))
        self.pairs.append(pair)

    def acked_mbps(self, begin_ms: float, end_ms: float) -> Any:
        """Return what each connection carried between two instants, Mbit/s."""
        acked = []
        for end in (begin_ms, end_ms):
            self.engine.run(round(end * PS_PER_MS), while_jobs=False)
            acked.append([self.engine.pair_result(pair).acked for pair in self.pairs])
        return np.diff(acked, axis=0)[0] * 8 / (end_ms - begin_ms) / 1e3


def dctcp_equations(flows: int, bandwidth_delay: float, k: float) -> dict[str, float]:
    """Return what SIGCOMM'10 derives for flows in step (section 3.3), in packets and round trips."""
    window = (bandwidth_delay + k) / flows
    wanted = (2 * window + 1) / (window + 1) ** 2
    alpha = math.sqrt(wanted)
    for _ in range(100):
        alpha = math.sqrt(wanted / (1 - alpha / 4))
    amplitude = flows * (window + 1) * alpha / 2
    return {"most": k + flows, "least": max(k + flows - amplitude, 0.0), "period_rtt": (window + 1) * alpha / 2}


def dctcp_queue(flows: int, ms: float, sample_us: float = 10.0) -> dict[str, Any]:
    gbps, rtt_us, k = 10.0, 100.0, 40.0
    # Directions in pairs: each sender to the switch and back, and last the switch to the receiver and back.
    ports = [each for host in range(flows) for each in (port(100, rtt_us / 4, host), port(100, rtt_us / 4))]
    ports += [port(gbps, rtt_us / 4, marking=step(k)), port(gbps, rtt_us / 4, flows)]
    network, out = Network(ports, flows + 1, sample_us), 2 * flows
    for host in range(flows):
        network.send(Flow([2 * host, out], [out + 1, 2 * host + 1], (host, flows)), "dctcp", 0.05 * host, 1)
    carried = network.acked_mbps(ms / 4, ms)
    queue = network.engine.samples().ports["backlog_bytes"][:, out] / FRAME
    late = queue[len(queue) // 4 :]
    centered = late - late.mean()
    power = np.abs(np.fft.rfft(centered)) ** 2
    # The strongest period of at most 50 round trips: what is slower is flows' shares that drift.
    slowest = int(len(late) * sample_us / (50 * rtt_us)) + 1
    strongest = slowest + int(np.argmax(power[slowest:]))
    equations = dctcp_equations(flows, gbps * 1e9 * rtt_us / 1e6 / 8 / tcp.MTU, k)
    return {
        "flows": flows,
        "published": equations,
        "most": float(np.percentile(late, 99)),
        "least": float(np.percentile(late, 1)),
        "period_rtt": len(late) * sample_us / strongest / rtt_us,
        "mean": float(late.mean()),
        "used": float(carried.sum() / (gbps * 1e3 * payload_share(tcp.MTU))),
    }


def dctcp_two_bottlenecks(edge: Marking, core: Marking, begin_ms: float, end_ms: float) -> dict[str, float]:
    """Return Mbit/s a flow of S1 (to R1 over both bottlenecks), S2 (over the first) and S3 (over the second)."""
    delay_us = 10.0
    names = [f"S1.{k}" for k in range(10)] + [f"S2.{k}" for k in range(20)] + [f"S3.{k}" for k in range(10)]
    receivers = ["R1", *(f"R2.{k}" for k in range(20))]
    hosts = {name: number for number, name in enumerate([*names, *receivers])}
    ports = [port(10, delay_us, marking=core), port(10, delay_us, marking=core)]
    up: dict[str, int] = {}
    for name, number in hosts.items():
        up[name] = len(ports)
        ports += [port(1, delay_us, number), port(1, delay_us, marking=edge)]
    network = Network(ports, len(hosts), 1000)
    for number, name in enumerate(names):
        to = f"R2.{name[3:]}" if name.startswith("S2") else "R1"
        crosses = not name.startswith("S3")
        out = [up[name], *([0] if crosses else []), up[to] + 1]
        back = [up[to], *([1] if crosses else []), up[name] + 1]
        network.send(Flow(out, back, (hosts[name], hosts[to])), "dctcp", number % 10 * begin_ms / 40)
    rates = network.acked_mbps(begin_ms, end_ms)
    groups = {
        group: [rate for name, rate in zip(names, rates, strict=True) if name.startswith(group)]
        for group in ("S1", "S2", "S3")
    }
    return {group: float(np.mean(each)) for group, each in groups.items()}


def window_equation(algorithm: str, loss: float, rtt_s: float) -> float:
    """Return RFC 9438's mean window in segments: Reno's by RFC 3649, and CUBIC's by equation 6 or as Reno's."""
    reno = 1.2 / math.sqrt(loss)
    return reno if algorithm == "reno" else max(reno, (0.4 * 3.7 / 1.2) ** 0.25 * (rtt_s / loss) ** 0.75)


def mean_window(algorithm: str, loss: float, rtt_s: float, losses: float) -> dict[str, Any]:
    """Return the mean window where packets are lost at random and nothing queues; from packets carried a round trip."""
    delay_us = rtt_s * 1e6 / 4
    ports = [port(100, delay_us, 0), port(100, delay_us), port(100, delay_us, loss=loss), port(100, delay_us, 1)]
    network = Network(ports, 2, 1e6)
    network.send(Flow([0, 2], [3, 1], (0, 1)), algorithm, 0)
    published = window_equation(algorithm, loss, rtt_s)
    ms = losses / loss / published * rtt_s * 1e3
    [mbps] = network.acked_mbps(ms / 10, 1.1 * ms)
    window = mbps * 1e6 / 8 * rtt_s / segment_bytes(tcp.MTU)
    return {"algorithm": algorithm, "loss": loss, "rtt_ms": rtt_s * 1e3, "published": published, "window": window}


def main() -> None:
    options = read_options(__doc__, {})
    ms, end_ms, losses = (20.0, 60.0, 3.0) if options.short else (400.0, 5000.0, 300.0)
    queues = [dctcp_queue(flows, ms) for flows in (2, 10, 40)]
    begin_ms = 0.8 * end_ms
    steps = dctcp_two_bottlenecks(step(20), step(65), begin_ms, end_ms)
    red = dctcp_two_bottlenecks(Marking(20, 60, 0.02), Marking(50, 150, 0.02), begin_ms, end_ms)
    cases = [
        ("reno", 1e-3, 0.1),
        ("reno", 1e-4, 0.1),
        ("cubic", 1e-3, 0.1),
        ("cubic", 1e-4, 0.1),
        ("cubic", 1e-4, 0.01),
    ]
    windows = [mean_window(*case, losses) for case in cases]
    lines = []
    for each in queues:
        printed = ", ".join(f"{name} {value:.1f} ({each[name]:.1f})" for name, value in each["published"].items())
        lines.append(f"queue of {each['flows']} flows, packets, published (here): {printed}; mean {each['mean']:.1f}")
    for title, published, found in (("step, testbed", SIGCOMM10_MBPS, steps), ("RED, ns-3", NS3_MBPS, red)):
        lines.append(
            f"{title}: " + ", ".join(f"{name} {mbps} ({found[name]:.0f}) Mbit/s" for name, mbps in published.items())
        )
    for each in windows:
        where = f"{each['algorithm']} at {each['loss']:g} and {each['rtt_ms']:g} ms"
        lines.append(f"window of {where}: {each['published']:.0f} ({each['window']:.0f}) segments")
    worst = max(abs(math.log(each["window"] / each["published"])) for each in windows)
    lines.append(f"windows differ by a factor of at most {math.exp(worst):.2f}")
    print_result(options, {"queues": queues, "steps": steps, "red": red, "windows": windows}, lines)


if __name__ == "__main__":
    main()
