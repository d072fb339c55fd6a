# SPDX-License-Identifier: Apache-2.0
"""Live rates of links and cross traffic, from the output of samplers so far."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from roundabout.runner.hosts.host_group import HostGroup
from roundabout.runner.observer import CrossTrafficUse, LinkUse
from roundabout.runner.tables.rows import Samples
from roundabout.spec import TrialSpec
from roundabout.spec.topology import Link

WINDOW_NS = (
    1_000_000_000  # averaging window of a few iterations; a shorter one shows the jobs' phases, not the link's use
)


class PortSample(NamedTuple):
    """A port's cumulative counters and backlog at an instant."""

    at_ns: int
    tx_bytes: int
    rx_bytes: int
    marks: int | None
    backlog_bytes: int | None


History = deque[PortSample]  # a port's samples of the last WINDOW_NS


class PortHistories:
    """The samples of the last second of all ports of a sampler, by interface index."""

    def __init__(self, samples: Samples) -> None:
        self.history: defaultdict[str, History] = defaultdict(deque)
        self._samples, self._seen = samples, 0

    def follow(self) -> None:
        """Read the lines that the sampler printed since the last call."""
        fresh = self._samples.rows("port", self._seen)
        self._seen += len(fresh)
        for row in fresh:
            if row["tx_bytes"]:  # empty while the port is gone
                self._take(row)

    def _take(self, row: Mapping[str, str]) -> None:
        at_ns, sent, received = int(row["before_ns"]), int(row["tx_bytes"]), int(row["rx_bytes"])
        marks, waiting = (int(text) if (text := row.get(name)) else None for name in ("marks", "qdisc_backlog_bytes"))
        history = self.history[row["ifindex"]]
        history.append(PortSample(at_ns, sent, received, marks, waiting))
        while at_ns - history[0].at_ns > WINDOW_NS:
            history.popleft()


class TrafficMeter:
    """A meter of the rates of a trial's links and cross traffic, from samples of switch ports and host interfaces."""

    def __init__(
        self, spec: TrialSpec, site: HostGroup, switches: Sequence[Samples], hosts: Mapping[str, Samples]
    ) -> None:
        """Follow the samplers of `switches` and `hosts`."""
        self._spec, self._site = spec, site
        self._switches = [PortHistories(samples) for samples in switches]
        wanted = {part.sender for part in spec.cross_traffic.values()} if switches else hosts.keys()
        self._hosts = {host: PortHistories(samples) for host, samples in hosts.items() if host in wanted}

    def links(self) -> dict[str, LinkUse]:
        """Return the use of links by name, the bottleneck first.

        The source is the link's switch port, or else its host's interface.
        """
        for ports in (*self._switches, *self._hosts.values()):
            ports.follow()
        by_weight = sorted(self._spec.topology.links, key=lambda link: not link.bottleneck)
        found = ((link, self._use(link)) for link in by_weight)
        return {link.name: use for link, use in found if use}

    def cross_traffic(self) -> dict[str, CrossTrafficUse]:
        """Return the use of each cross traffic that sends, by name, as of the last call of `links`."""
        loads = {name: part for name, part in self._spec.cross_traffic.items() if part.load_gbps > 0}
        users = [host for job in self._spec.jobs.values() for host in job.workers]
        users += [part.sender for part in loads.values()]
        return {
            name: CrossTrafficUse(
                part.load_gbps, self._sent_gbps(part.sender) if users.count(part.sender) == 1 else None
            )
            for name, part in loads.items()
        }

    def _use(self, link: Link) -> LinkUse | None:
        histories = self._histories(link)
        spans = [(history[0], history[-1]) for history in histories if len(history) > 1]
        if not spans:
            return None
        bytes_per_ns = max(max(_rate(old, new, "tx_bytes"), _rate(old, new, "rx_bytes")) for old, new in spans)
        marks = [_rate(old, new, "marks") for old, new in spans if None not in (old.marks, new.marks)]
        waiting = [
            sample.backlog_bytes for history in histories for sample in history if sample.backlog_bytes is not None
        ]
        return LinkUse(
            link.line_rate_gbps,
            self._gbps(bytes_per_ns),
            sum(marks) * 1e9 * self._site.dilation if marks else None,
            round(max(waiting) * self._site.scale / self._site.dilation) if waiting else None,
        )

    def _histories(self, link: Link) -> list[History]:
        indices = [str(port.ifindex) for port in self._site.ports if port.link == link.name]
        seen = [ports.history[index] for ports in self._switches for index in indices if index in ports.history]
        of_hosts = (self._hosts[end].history.values() for end in link.ends if end in self._hosts)
        return seen or [history for histories in of_hosts for history in histories]

    def _sent_gbps(self, host: str) -> float | None:
        histories = self._hosts[host].history.values() if host in self._hosts else ()
        rates = [_rate(history[0], history[-1], "tx_bytes") for history in histories if len(history) > 1]
        return self._gbps(sum(rates)) if rates else None

    def _gbps(self, bytes_per_ns: float) -> float:
        return bytes_per_ns * 8 * self._site.scale


def _rate(old: PortSample, new: PortSample, counter: str) -> float:
    """Return the growth of a counter between two samples, per ns."""
    grown: int = getattr(new, counter) - getattr(old, counter)
    return grown / (new.at_ns - old.at_ns)
