# SPDX-License-Identifier: Apache-2.0
"""What a link carries right now, from the lines that switch samplers have printed so far."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from roundabout.runner.hosts.site import Site
from roundabout.runner.tables.records import Samples

WINDOW_NS = 1_000_000_000  # a few iterations: shorter windows show the jobs' phases, not the link's use


class Sample(NamedTuple):
    """One port's cumulative counters at an instant."""

    at_ns: int
    tx_bytes: int
    marks: int | None


class Reading(NamedTuple):
    """Use of the link's busier direction in the paper's units, headers included; marks of both, None: unknown."""

    gbps: float
    marks_per_s: float | None


class LinkMeter:
    """Follows the ports of one link."""

    def __init__(self, link: str, site: Site, switches: Sequence[Samples]) -> None:
        """Of what the samplers of `switches` say."""
        self.link = link
        self._scale, self._dilation = site.scale, site.dilation
        self._switches = switches
        self._seen = [0] * len(switches)
        self._history: Mapping[str, deque[Sample]] = {
            str(port.ifindex): deque() for port in site.ports if port.link == link
        }

    def read(self) -> Reading | None:
        """The last second; None before there are two samples."""
        for index, samples in enumerate(self._switches):
            fresh = samples.rows("port", self._seen[index])
            self._seen[index] += len(fresh)
            for row in fresh:
                self._take(row)
        spans = [(history[0], history[-1]) for history in self._history.values() if len(history) > 1]
        if not spans:
            return None
        rates = [(new.tx_bytes - old.tx_bytes) * 8 / (new.at_ns - old.at_ns) for old, new in spans]
        marks = [
            (new.marks - old.marks) * 1e9 / (new.at_ns - old.at_ns)
            for old, new in spans
            if new.marks is not None and old.marks is not None
        ]
        return Reading(max(rates) * self._scale, sum(marks) * self._dilation if marks else None)

    def _take(self, row: Mapping[str, str]) -> None:
        if (history := self._history.get(row["ifindex"])) is None:
            return
        at_ns, sent, marks = int(row["before_ns"]), row["tx_bytes"], row["marks"]
        if sent:  # empty while the port is gone
            history.append(Sample(at_ns, int(sent), int(marks) if marks else None))
        while history and at_ns - history[0].at_ns > WINDOW_NS:
            history.popleft()
