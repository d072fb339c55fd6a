# SPDX-License-Identifier: Apache-2.0
"""Measurement of a new lab's links by TCP flows between its hosts.

The flows that measure a port all leave through the port. They use enough hosts on both sides that nothing else limits
them, if the topology has these hosts. Ports whose flows do not disturb each other are measured in parallel.
"""

import math
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import NoReturn, Self

from roundabout.runner.hosts.host_group import Port
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.lifecycle.lab_record import LinkMeasurement, PortMeasurement
from roundabout.testbeds.lab.network.layout import HostNic, Layout
from roundabout.testbeds.lab.network.namespaces import run_inside
from roundabout.testbeds.lab.network.port_queues import Queue

RATE_TOLERANCE = 0.03  # largest deviation of a link's measured rate from the topology's, as a share of the latter
WARM_UP_S = 0.015
# Durations of the measurements of a port. If a port misses its rate, the next duration is tried, and the last one is
# repeated. A temporary lack of CPU time is a likelier cause than a wrong link, and can last on virtual machines.
WINDOWS_S = (0.03, 0.1, 0.2, 0.4, 0.8, 1.6)
MEASUREMENT_TIMEOUT_S = 30.0
CPU_CARRIES_BPS = 4e9  # total payload rate of parallel measurements, well below the capacity of two cores
PINGS = 5
ICMP_ECHO = 8
SO_RCVBUFFORCE = 33
QUEUE_S = 0.005  # queue of a flow, which keeps a port busy and drains before the next measurement


@dataclass(frozen=True)
class Probe:
    """The flows (sender, receiver) that measure one port, the ports that they load, and the ports that ACKs use."""

    port: Port
    flows: tuple[tuple[HostNic, HostNic], ...]
    loads: frozenset[int]
    acks: frozenset[int]

    def is_independent_of(self, other: "Probe") -> bool:
        """Return True if both probes can run in parallel. ACKs that wait behind other data would slow their flow."""
        return self.loads.isdisjoint(other.loads | other.acks) and other.loads.isdisjoint(self.acks)


def measure_links(
    layout: Layout, queues: Mapping[Port, Queue], pids: Mapping[str, int], scale: float
) -> tuple[LinkMeasurement, ...]:
    """Measure every link in both directions. Of several paths, those that no route between hosts takes are left out.

    Raises:
        LabError: for 30 s, each measurement of a port differed from the topology's rate by more than
            RATE_TOLERANCE.
    """
    crossed = {hop.link.name for route in layout.links_between.values() for hop in route}
    links = [link.name for link in layout.topology.links if link.name in crossed]
    round_trips = {link: measure_base_rtt_us(layout, pids, link) for link in links}
    probes = [probe for port in layout.ports if (probe := plan_probe(layout, port)) is not None]
    meter = RateMeter(layout, pids, scale, queues)
    rates: dict[int, float] = {}
    missed = probes
    begin = time.monotonic()
    for tries, window_s in enumerate(chain(WINDOWS_S, repeat(WINDOWS_S[-1])), start=1):
        waited_s = time.monotonic() - begin
        for group in group_probes(missed, scale):
            rates |= meter.of(group, window_s)
        missed = [probe for probe in missed if _is_off(probe.port, rates[probe.port.ifindex])]
        if not missed:
            break
        if waited_s >= MEASUREMENT_TIMEOUT_S:
            _raise_off_rate(missed[0].port, rates[missed[0].port.ifindex], tries, waited_s)
    return tuple(
        LinkMeasurement(
            link=link,
            base_rtt_us=round_trips[link],
            ports=tuple(
                PortMeasurement(ifindex=port.ifindex, payload_rate_gbps=rates[port.ifindex])
                for port in layout.ports
                if port.link == link and port.ifindex in rates
            ),
        )
        for link in links
    )


def plan_probe(layout: Layout, port: Port) -> Probe | None:
    """Return the probe that measures `port`, or None if no traffic between hosts uses the port."""
    numbers = {host: number for number, host in enumerate(layout.hosts)}
    through = [pair for pair, path in layout.paths.items() if port in path]
    # Short ways first; then each sender's next host, so that the probes of a large topology spread over it.
    through.sort(
        key=lambda pair: (len(layout.paths[pair]), (numbers[pair[1].node] - numbers[pair[0].node]) % len(numbers))
    )
    flows: list[tuple[HostNic, HostNic]] = []
    senders: set[HostNic] = set()
    elsewhere: set[Port] = set()
    carried_gbps = 0.0
    for pair in through:
        others = set(layout.paths[pair]) - {port}
        if carried_gbps <= 1.5 * port.payload_rate_gbps and pair[0] not in senders and others.isdisjoint(elsewhere):
            flows.append(pair)
            senders.add(pair[0])
            elsewhere |= others
            carried_gbps += min((other.payload_rate_gbps for other in others), default=math.inf)
    if not flows:
        return None
    loads = {crossed.ifindex for flow in flows for crossed in layout.paths[flow]}
    acks = {crossed.ifindex for sender, receiver in flows for crossed in layout.paths[receiver, sender]}
    return Probe(port, tuple(flows), frozenset(loads), frozenset(acks))


def group_probes(probes: list[Probe], scale: float) -> Iterator[list[Probe]]:
    """Yield groups of probes that can run in parallel, limited by CPU_CARRIES_BPS.

    The rates of the probes' ports are the papers'. The lab's rates are divided by `scale`.
    """
    waiting = list(probes)
    while waiting:
        group: list[Probe] = []
        for probe in waiting:
            load_bps = sum(other.port.payload_rate_gbps for other in (*group, probe)) * 1e9 / scale
            if not group or (load_bps <= CPU_CARRIES_BPS and all(probe.is_independent_of(other) for other in group)):
                group.append(probe)
        yield group
        waiting = [probe for probe in waiting if probe not in group]


def _is_off(port: Port, measured_gbps: float) -> bool:
    return abs(measured_gbps / port.payload_rate_gbps - 1) > RATE_TOLERANCE


def _raise_off_rate(port: Port, measured_gbps: float, tries: int, waited_s: float) -> NoReturn:
    raise LabError(
        f"link {port.link}, from {port.switch} to {port.towards}: measured {measured_gbps:.2f} Gbit/s of payload,"
        f" expected {port.payload_rate_gbps:g} within {RATE_TOLERANCE:.0%} (at the papers' scale); it was off in each"
        f" of {tries} tries, of which this one began after {waited_s:.0f} s",
        "end what else keeps this machine busy, or choose a larger scale",
    )


@dataclass(frozen=True)
class RateMeter:
    """A meter that loads ports and measures their rates."""

    layout: Layout
    pids: Mapping[str, int]
    scale: float
    queues: Mapping[Port, Queue]

    def of(self, group: list[Probe], window_s: float) -> dict[int, float]:
        """Load the ports of `group` in parallel for `window_s`. Return their payload rates by interface index.

        Rates are in the papers' Gbit/s.
        """
        with ExitStack() as stack:
            greedy = {
                probe.port.ifindex: [stack.enter_context(self._greedy_flow(*flow)) for flow in probe.flows]
                for probe in group
            }
            time.sleep(WARM_UP_S)
            begin = time.monotonic()
            time.sleep(window_s)
            end = time.monotonic()
        return {ifindex: _rate_bps(flows, begin, end) * self.scale / 1e9 for ifindex, flows in greedy.items()}

    def _greedy_flow(self, sender: HostNic, receiver: HostNic) -> "_GreedyFlow":
        queues = [self.queues[port] for port in self.layout.paths[sender, receiver]]
        # Two flows share a port; they shall not overflow a short queue.
        buffer = min(min(queue.drain_bytes_per_s * QUEUE_S, queue.limit_bytes / 4) for queue in queues)
        pids = self.pids[sender.node], self.pids[receiver.node]
        return _GreedyFlow(*pids, (sender.address, receiver.address), int(buffer))


def _rate_bps(flows: list["_GreedyFlow"], begin: float, end: float) -> float:
    """Return the payload rate of all `flows`, from the first to the last arrival between two instants, bit/s."""
    arrivals = sorted(arrival for flow in flows for arrival in flow.arrivals if begin <= arrival[0] <= end)
    if len(arrivals) < 2:
        return 0.0
    return sum(count for _, count in arrivals[1:]) * 8 / (arrivals[-1][0] - arrivals[0][0])


class _GreedyFlow:
    """A saturating TCP connection, whose receiver records the arrived bytes over time."""

    def __init__(self, sender: int, receiver: int, addresses: tuple[str, str], buffer_bytes: int) -> None:
        own, other = ((address, 0) for address in addresses)
        with run_inside(receiver, lambda: socket.create_server(other)) as listener:
            # From the start: the kernel's own growth of the buffer would take longer than we measure.
            listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, buffer_bytes)
            self._sender = run_inside(sender, lambda: socket.create_connection(listener.getsockname(), 5, own))
            self._receiver, _ = listener.accept()
        # Cubic would leave its slow start at the first queueing delay, and take seconds to fill the link.
        self._sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        for end in (self._sender, self._receiver):
            # Closing discards bytes that are still queued.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.settimeout(5)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        self._stopping = False
        self.arrivals: list[tuple[float, int]] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._receiver.shutdown(socket.SHUT_RDWR)  # wakes both threads
        for thread in self._threads:
            thread.join()
        self._sender.close()
        self._receiver.close()

    def _send(self) -> None:
        chunk = bytes(1 << 16)
        with suppress(OSError):
            while not self._stopping:
                self._sender.send(chunk)

    def _receive(self) -> None:
        chunk = bytearray(1 << 18)
        with suppress(OSError):
            while count := self._receiver.recv_into(chunk):
                self.arrivals.append((time.monotonic(), count))


def measure_base_rtt_us(layout: Layout, pids: Mapping[str, int], link: str) -> float:
    """Return the shortest round trip, in us, of some pings between the nearest NICs on the two sides of `link`."""
    across = [pair for pair in layout.links_between if any(hop.link.name == link for hop in layout.links_between[pair])]
    sender, receiver = min(across, key=lambda pair: len(layout.paths[pair]))
    open_raw = partial(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    with run_inside(pids[sender.node], open_raw) as raw:
        raw.settimeout(1)
        raw.bind((sender.address, 0))
        raw.connect((receiver.address, 0))
        return min(_ping_us(raw, number) for number in range(PINGS))


def _ping_us(raw: socket.socket, number: int) -> float:
    echo = struct.pack("!BBHHH", ICMP_ECHO, 0, 0, 0, number)
    total = sum(struct.unpack("!4H", echo))
    begin = time.perf_counter()
    raw.send(echo[:2] + struct.pack("!H", ~total & 0xFFFF) + echo[4:])
    raw.recv(128)
    return (time.perf_counter() - begin) * 1e6
