# SPDX-License-Identifier: Apache-2.0
"""Small networks for the packet-level engine, of links that carry a byte a nanosecond."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from roundabout.models.packets import Engine, Message
from roundabout.models.packets.structures import PS_PER_MS, Structure, make_structure

RATE = 1e9
"""Of every link, bytes/s: a packet of 1000 bytes takes 1 us."""
PACKET = 1000
PS_PER_US = 1_000_000

NIC: dict[str, Any] = {
    "payload_bytes": PACKET,
    "header_bytes": 0,
    "control_bytes": 100,
    "around_bytes": 0,
    "ack_bytes": 1 << 20,
    "burst_packets": 1,
    "pace_jitter": 0.0,
    "cnp_delay_ps": 0,
    "cnp_jitter_ps": 0,
    "timeout_ps": 10 * PS_PER_MS,
    "seed": 1,
}
PORT: dict[str, Any] = {
    "payload_bytes_per_s": RATE,
    "line_bytes_per_s": RATE,
    "delay_ps": PS_PER_US,
    "queue_bytes": -1,
    "xoff_bytes": -1,
    "host": -1,
}
TCP: dict[str, Any] = {
    "mss_bytes": PACKET,
    "header_bytes": 0,
    "tso_bytes": PACKET,
    "write_bytes": 1 << 16,
    "window_bytes": 1 << 30,
    "initial_window": 10,
    "rto_min_ps": 10 * PS_PER_MS,
    "rto_initial_ps": 1000 * PS_PER_MS,
    "delayed_ack_ps": 40 * PS_PER_MS,
    "ack_segments": 2,
    "jitter_ps": PS_PER_US,
    "has_tail_loss_probe": 1,
    "restarts_after_idle": 0,
    "is_paced": 0,
}
"""TCP without bursts: segmentation offload takes a segment at once."""
ALGORITHMS = ("reno", "cubic", "dctcp")
NEVER_SLOWER = make_structure(
    "reaction_plan",
    T_ps=PS_PER_US * 100,
    alpha_timer_ps=PS_PER_US * 55,
    R_AI=1,
    R_HAI=1,
    R_min=int(RATE),
    R_max=int(RATE),
    F=5,
    g_q24=1 << 16,
)
"""A reaction point that sends at line rate, whatever is marked."""


def tcp_plan(algorithm: str = "reno", g: float = 1 / 16, **values: int) -> Structure:
    """Return a connection with segments of a packet, and the values given."""
    congestion = {
        "algorithm": ALGORITHMS.index(algorithm),
        "hystart": values.pop("hystart", 0),
        "g_q24": round(g * (1 << 24)),
    }
    return make_structure("tcp_plan", **{**TCP, "is_ecn": algorithm == "dctcp", **values}, congestion=congestion)


def change_plan(plan: Structure, **values: int) -> Structure:
    """Return a reaction point with the values given in place of its own."""
    return make_structure("reaction_plan", **{**{name: getattr(plan, name) for name in dir(plan)}, **values})


class Tree:
    """A tree of links, each of two nodes, with an engine on it. Nodes that begin with `h` are hosts.

    Counters are sampled each `sample_us`; directions in `slow` carry that many times less than others.
    """

    def __init__(
        self,
        links: Sequence[tuple[str, str]],
        sample_us: float = 10,
        slow: Mapping[tuple[str, str], int] | None = None,
        nic: Mapping[str, Any] | None = None,
        **port: Any,
    ) -> None:
        self.links = list(links)
        ends = [pair for link in links for pair in (link, link[::-1])]
        self.numbers = {pair: place for place, pair in enumerate(ends)}
        self.hosts = sorted({node for link in links for node in link if node.startswith("h")})
        ports = [make_structure("port_plan", **{**PORT, **port, "host": self._host(one)}) for one, _ in ends]
        for pair, factor in (slow or {}).items():
            ports[self.numbers[pair]].payload_bytes_per_s /= factor
        self.engine = Engine(
            make_structure("nic_plan", **{**NIC, **(nic or {})}), ports, len(self.hosts), round(sample_us * PS_PER_US)
        )

    def _host(self, node: str) -> int:
        return self.hosts.index(node) if node in self.hosts else -1

    def route(self, one: str, other: str) -> list[int]:
        """Return the ports from one node to another."""
        ways = {one: [one]}
        frontier = [one]
        while other not in ways:
            node = frontier.pop()
            for link in self.links:
                if node in link and (far := link[1 - link.index(node)]) not in ways:
                    ways[far] = [*ways[node], far]
                    frontier.append(far)
        way = ways[other]
        return [self.numbers[each] for each in pairwise(way)]

    def pair(self, one: str, other: str, plan: Structure = NEVER_SLOWER, priority: int = 0) -> int:
        """Add a queue pair between two hosts."""
        hosts = (self.hosts.index(one), self.hosts.index(other))
        return self.engine.add_pair(self.route(one, other), self.route(other, one), hosts, plan, priority)

    def connect(self, one: str, other: str, plan: Structure) -> int:
        """Add a TCP connection between two hosts."""
        hosts = (self.hosts.index(one), self.hosts.index(other))
        return self.engine.add_connection(self.route(one, other), self.route(other, one), hosts, plan)

    def send_over(self, pair: int, size: int, begin_us: int = 0) -> int:
        """Add a job of one iteration that sends `size` bytes over a queue pair or connection at once."""
        job = self.engine.add_job(
            make_structure("job_plan", workers=2, iterations=1, begins_ps=begin_us * PS_PER_US, departs_ps=-1)
        )
        self.engine.add_phase(job, 1, [Message(pair, 0, 1, size)])
        return job

    def send(self, one: str, other: str, size: int, begin_us: int = 0, **pair: Any) -> tuple[int, int]:
        """Add a job of one iteration that sends `size` bytes at once; return its number and its queue pair's."""
        job = self.engine.add_job(
            make_structure("job_plan", workers=2, iterations=1, begins_ps=begin_us * PS_PER_US, departs_ps=-1)
        )
        found = self.pair(one, other, **pair)
        self.engine.add_phase(job, 1, [Message(found, 0, 1, size)])
        return job, found

    def end_us(self, job: int) -> float:
        """Return the end of the receiver's last iteration."""
        return float(self.engine.iterations(job)[1][-1]["end_ps"] / PS_PER_US)
