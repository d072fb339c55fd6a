# SPDX-License-Identifier: Apache-2.0
"""Preconditions of a trial: the signals that its congestion controls need, and PFC without drops and deadlocks."""

import math
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from roundabout.spec.assembly.file_cache import cached_files
from roundabout.spec.errors import list_choices
from roundabout.spec.pfc import find_cycle, largest_required_headroom
from roundabout.spec.remaining_paths import find_stalled_flow
from roundabout.spec.transports import Transport
from roundabout.spec.transports.queues import drop_tail_bytes
from roundabout.spec.trial_spec import TrialSpec

Signal = Literal["marks", "drops"]

WITHOUT_SIGNALS = ("bbr", "cdg", "lp", "nv", "vegas", "yeah", "swift", "mltcp_swift")
"""Congestion controls that also react to round-trip times or delivered rates, so that they need no signal of ports."""

INCREASES = 2
"""Increases of DCQCN's timer in a phase without which the timer has next to no effect: the first is a fast recovery."""


class MissingSignal(NamedTuple):
    """A congestion control that lacks the signal that it needs. `remaining` is the signal that is left to it."""

    user: tuple[str, ...]  # place of its user in an experiment: ("jobs", "j1")
    transport: Transport
    ports: str
    remaining: Signal | None

    @property
    def found(self) -> str:
        """Return the fault as the beginning of a sentence."""
        return f"{self.transport.name} over {self.ports}, which give it no {self._needed}"

    @property
    def allowed(self) -> str:
        """Return what is allowed, with the remedy."""
        return f"ports that give {self._needed}, as with `queue: {self.transport.intended_queue}`"

    @property
    def _needed(self) -> str:
        return "marks" if self.transport.intended_queue != "drop-tail" else "marks and no drops"


def port_signals(spec: TrialSpec) -> frozenset[Signal]:
    """Return the signals of congestion that switch ports can give in a trial."""
    signals = set[Signal]()
    if spec.may_drop:
        signals.add("drops")
    thresholds = [user.transport.thresholds for user in spec.users if user.transport.thresholds]
    longest = _longest_queue_bytes(spec)
    if spec.queue != "drop-tail" and (
        not thresholds or any(each.Pmax and each.Kmin_bytes < longest for each in thresholds)
    ):
        signals.add("marks")
    return frozenset(signals)


def _longest_queue_bytes(spec: TrialSpec) -> float:
    """Return the longest queue that the topology lets a switch port have.

    In a shared buffer of B bytes, n queues or links at their thresholds hold n alpha B / (1 + n alpha) together.
    Lossless links have their headroom besides.
    """
    topology = spec.topology
    if topology.buffer:
        several = 1 if spec.may_drop else max(len(topology.links_of(switch)) for switch in topology.switches)
        share = several * topology.buffer.alpha
        headroom = 0 if spec.may_drop else several * largest_required_headroom(topology)[0]
        return min(topology.buffer.bytes * share / (1 + share) + headroom, topology.queue_bytes or math.inf)
    if not spec.may_drop:
        return math.inf
    return topology.queue_bytes or drop_tail_bytes(max(link.payload_rate_gbps for link in topology.links))


def find_missing_signals(spec: TrialSpec) -> Iterator[MissingSignal]:
    """Yield each congestion control whose ports never give it the signal that it needs."""
    given = port_signals(spec)
    users: dict[tuple[str, ...], Transport] = {("jobs", name): job.transport for name, job in spec.jobs.items()}
    users |= {("cross_traffic", name): each.transport for name, each in spec.cross_traffic.items()}
    users |= {("cluster",): spec.cluster.transport} if spec.cluster else {}
    for user, transport in users.items():
        needed = {"marks", "drops"} if transport.intended_queue == "drop-tail" else {"marks"}
        if transport.name not in WITHOUT_SIGNALS and not needed & given:
            ports = f"{'lossy' if spec.may_drop else 'lossless'} ports with the queue {spec.queue}"
            remaining: Signal | None = "drops" if transport.stands_for == "TCP" and "drops" in given else None
            yield MissingSignal(user, transport, ports, remaining)


@cached_files()
def find_warnings(specs: Iterable[TrialSpec]) -> list[str]:
    """Return sentences about trials that can run, but whose results may mean something else than they seem to."""
    checks = _weak_signals, _unusual_parameters, _slow_timers, _short_headroom, _cyclic_pauses, _stalled_flows
    return list(dict.fromkeys(text for spec in specs for check in checks for text in check(spec)))


def _weak_signals(spec: TrialSpec) -> Iterator[str]:
    users: dict[str, list[str]] = {}
    for each in find_missing_signals(spec):
        if each.remaining:
            users.setdefault(f"{each.found}; drops alone slow it down; expected {each.allowed}", []).append(
                each.user[-1]
            )
    for text, names in users.items():
        yield f"transport of {list_choices(names)}: {text}"
    if spec.tcp.ecn is False and "drops" not in port_signals(spec):
        names = sorted({user.transport.name for user in spec.users if user.transport.intended_queue == "drop-tail"})
        for name in names:
            yield (
                f"tcp.ecn: found false with {name} over lossless ports, which drop nothing: its windows grow to their "
                "limits in a lab, and packets drop what they would mark; expected true, or a lossy topology"
            )


def _unusual_parameters(spec: TrialSpec) -> Iterator[str]:
    """Yield a warning for each parameter that an experiment gives and that no NIC takes."""
    for transport in (user.transport for user in spec.users):
        declared = transport.declaration
        for each in declared.hardware if declared else ():
            value = transport.parameters.get(each.parameter)
            if isinstance(value, int | float) and not each.least <= value <= each.most:
                takes = f"{each.register} of NVIDIA's NICs takes {each.least:g} to {each.most:g}"
                yield f"transport.{each.parameter}: found {value:g}, which no NIC has: {takes}"


def _slow_timers(spec: TrialSpec) -> Iterator[str]:
    """Yield a warning for each timer of rate increases that hardly expires while its jobs send."""
    users: dict[str, list[str]] = {}
    for name, job in spec.jobs.items():
        period_us = job.transport.requested.get("T_us")
        longest_us = 1e3 * max((phase.alone_ms or 0.0 for phase in job.profile.phases if phase.bytes), default=math.inf)
        if isinstance(period_us, int | float) and INCREASES * period_us > longest_us:
            text = (
                f"found {period_us:g}, so that the timer raises a rate less than {INCREASES} times while a phase sends"
            )
            users.setdefault(f"{text}; expected at most {longest_us / INCREASES:g}", []).append(name)
    for text, names in users.items():
        yield f"transport.T_us of {list_choices(names)}: {text}"


def _short_headroom(spec: TrialSpec) -> Iterator[str]:
    buffer = spec.topology.buffer
    if not buffer or buffer.headroom_bytes is None or spec.may_drop:
        return
    needed, link = largest_required_headroom(spec.topology)
    if needed > buffer.headroom_bytes:
        yield (
            f"topology.buffer.headroom_bytes: found {buffer.headroom_bytes}; link {link} may bring {needed} bytes more "
            f"when PFC has decided to pause it, so that lossless queues may drop; expected {needed} or more, or no "
            "headroom_bytes, for what each link needs"
        )


def _cyclic_pauses(spec: TrialSpec) -> Iterator[str]:
    if spec.may_drop or spec.topology.is_tree:
        return
    cycle = find_cycle(turn for job in spec.jobs for turn in spec.turns(job))
    if cycle:
        names = [hop.link.name for hop in cycle]
        yield (
            f"topology.routing: routes go around {', '.join(names[:-1])} and {names[-1]}, lossless links that can "
            "pause each other for good (a cyclic buffer dependency: PFC deadlock); expected routes without a cycle"
        )


def _stalled_flows(spec: TrialSpec) -> Iterator[str]:
    """Yield a warning for each failure that leaves a flow without a path until a link recovers."""
    failed: frozenset[str] = frozenset()
    for at_ms, link, state in spec.link_changes:
        before, failed = failed, failed - {link} if state.is_up else failed | {link}
        if failed > before and (stalled := find_stalled_flow(spec, failed)):
            routes = "without `reroute_after_ms` routes stay" if spec.reroute_after_ms is None else "no path is left"
            yield f"events: {link} fails at {at_ms:g} ms: {stalled} waits until it recovers, because {routes}"
