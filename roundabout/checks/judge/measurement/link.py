# SPDX-License-Identifier: Apache-2.0
"""Measurements of flows on one link of a lab: shares, reaction to marks and losses, and an incast.

All contestants use the same two kinds of queue. A deep queue marks packets that leave more than `MARKS_MS` of the
link's rate in the queue (ECN, RFC 3168). A short queue of `DROPS_MS` drops packets. Rates and bytes are a lab's,
divided by its scale. Hosts' buffers are large enough not to limit a flow.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from roundabout.checks.judge.figures import Figures, Scene
from roundabout.checks.judge.measurement import incast
from roundabout.checks.judge.measurement.iperf_flows import FlowResults, send_flows
from roundabout.checks.judge.measurement.sandbox import NetnsHost
from roundabout.runner.transports import TOOL
from roundabout.spec.topology import Topology
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.calibration.calibration import NEVER_MARK, Ecn
from roundabout.testbeds.lab.network.layout import interface

MARKS_MS, DROPS_MS = 0.5, 5.0  # queue lengths as time at the link's rate; the second holds 16 initial windows
FAIRNESS = (2, 8, 32)
SECONDS = 4
SEGMENT_BYTES = 1448
# Settings of hosts beyond a trial's: large send buffers, and tail loss probes.
FREE = {"net.ipv4.tcp_wmem": "4096 262144 33554432", "net.ipv4.tcp_early_retrans": 3}


def bytes_in(topology: Topology, ms: float) -> int:
    """Return the bytes that the bottleneck carries in `ms` at its payload rate, in the papers' units."""
    return round(topology.bottleneck.payload_rate_gbps * 1e9 / 8 * ms / 1e3)


def with_short_queues(topology: Topology) -> Topology:
    """Return the topology with lossy queues of DROPS_MS."""
    return topology.model_copy(update={"queue": "lossy", "queue_bytes": bytes_in(topology, DROPS_MS)})


class SharedLink:
    """A lab whose two sides share one link. The left side's hosts send to the first host of the right side."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._link = lab.topology.bottleneck
        places = {
            name: NetnsHost(pid, lab.hosts[name].address)
            for name, pid in lab.pids().items()
            if pid and name in lab.hosts
        }
        first = next(iter(places))
        others = [name for name in places if len(lab.topology.path(first, name)) > 2]
        self.senders = [place for name, place in places.items() if name not in others]
        self.receiver = places[others[0]]
        self._places = places
        self.gbps = self._link.payload_rate_gbps / lab.scale

    def set_marking(self, *, at_all: bool) -> None:
        """Switch marking on, with a threshold of `MARKS_MS`, or off."""
        step = round(bytes_in(self._lab.topology, MARKS_MS) / self._lab.scale)
        self._lab.set_thresholds(Ecn(kmin_bytes=step, kmax_bytes=step, pmax=1) if at_all else NEVER_MARK)

    def prepare(self, trial: TrialSpec) -> None:
        """Apply the settings of `trial` to all hosts, which then use its transport."""
        (transport,) = trial.transports.values()
        host = next(name for name in self._places if trial.transport_of(name))
        requested = self._lab.settings_document(trial, host)
        values = requested.get("transport", {}).get(transport.name, {})
        for place in self._places.values():
            place.set_sysctls(requested["sysctl"] | FREE)
            place.run(
                "ip", "link", "set", interface(0), "gso_max_size", str(requested["link"][interface(0)]["gso_max_size"])
            )
            if values:
                place.run(str(TOOL), "set", transport.name, *(f"{name}={value}" for name, value in values.items()))

    @contextmanager
    def count_marks(self) -> Iterator[list[float]]:
        """Yield a list to which the end of the block appends the share of marked packets during the block."""
        (port,) = (each for each in self._lab.ports if each.link == self._link.name and each.towards == self._receiver)
        before = self._lab.counters()[port.ifindex]
        share: list[float] = []
        yield share
        after = self._lab.counters()[port.ifindex]
        share.append((after.marks - before.marks) / max(1, after.packets - before.packets))

    @property
    def _receiver(self) -> str:
        receiver = next(name for name, place in self._places.items() if place == self.receiver)
        hops = self._lab.topology.path(next(iter(self._places)), receiver)
        return next(hop.receiver for hop in hops if hop.link == self._link)


def measure_fairness(link: SharedLink) -> Figures:
    """Measure Jain's fairness index of several flows, and the link's utilization."""
    found: Figures = {}
    for count in FAIRNESS:
        flows = send_flows(link.senders, link.receiver, count, SECONDS)
        found |= {f"jain_{count}": flows.jain, f"use_{count}": _use(flows, link)}
    return found


def measure_marks(link: SharedLink) -> Figures:
    """Measure one flow under marking: its window reduction, its queueing delay, and its share of marked packets."""
    with link.count_marks() as share:
        flows = send_flows(link.senders[:1], link.receiver, 1, SECONDS)
    return {**_answer(flows, link, "marks"), "marked": share[0]}


def measure_losses(link: SharedLink) -> Figures:
    """Measure the utilization and retransmissions of one flow whose packets are dropped."""
    flows = send_flows(link.senders[:1], link.receiver, 1, SECONDS)
    return {**_answer(flows, link, "loss"), "lost": flows.retransmitted * SEGMENT_BYTES / max(1, flows.sent_bytes)}


def measure_incast_on_link(link: SharedLink) -> Figures:
    """Measure an incast: its median duration as a multiple of the time that the link needs for its bytes."""
    least_s = incast.FLOWS * incast.BYTES * 8 / (link.gbps * 1e9)
    times_s = [
        incast.measure_incast(link.senders, link.receiver, incast.FLOWS, incast.BYTES) for _ in range(incast.ROUNDS)
    ]
    return {"incast": statistics.median(times_s) / least_s}


MEASURED: Mapping[Scene, Callable[[SharedLink], Figures]] = {
    "fairness": measure_fairness,
    "marks": measure_marks,
    "loss": measure_losses,
    "incast": measure_incast_on_link,
}


def _use(flows: FlowResults, link: SharedLink) -> float:
    """Return the use of the link, at most 1, because a queue may drain after the end."""
    return min(1.0, flows.total_gbps / link.gbps)


def _answer(flows: FlowResults, link: SharedLink, to: str) -> Figures:
    return {
        f"use_{to}": _use(flows, link),
        f"dip_{to}": flows.dip,
        f"window_{to}": flows.window_fall,
        f"queue_{to}_ms": flows.rtt_ms,
    }
