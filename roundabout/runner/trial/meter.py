# SPDX-License-Identifier: Apache-2.0
"""What a link carries right now, from the lines that switch samplers have printed so far."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from roundabout.runner.hosts.programs import Program
from roundabout.runner.hosts.site import Site

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

    def __init__(self, link: str, site: Site, samplers: Sequence[Program]) -> None:
        self.link = link
        self._scale = site.scale
        self._samplers = samplers
        self._seen = [0] * len(samplers)
        self._fields: dict[str, int] = {}
        self._history: Mapping[str, deque[Sample]] = {
            str(port.ifindex): deque() for port in site.ports if port.link == link
        }

    def read(self) -> Reading | None:
        """The last second; None before there are two samples."""
        for index, sampler in enumerate(self._samplers):
            fresh = sampler.lines[self._seen[index] :]
            self._seen[index] += len(fresh)
            for line in fresh:
                self._take(line.split(","))
        spans = [(history[0], history[-1]) for history in self._history.values() if len(history) > 1]
        if not spans:
            return None
        rates = [(new.tx_bytes - old.tx_bytes) * 8 / (new.at_ns - old.at_ns) for old, new in spans]
        marks = [
            (new.marks - old.marks) * 1e9 / (new.at_ns - old.at_ns)
            for old, new in spans
            if new.marks is not None and old.marks is not None
        ]
        return Reading(max(rates) * self._scale, sum(marks) if marks else None)

    def _take(self, words: list[str]) -> None:
        if words[0] == "#port":
            self._fields = {field: position for position, field in enumerate(words)}
        elif words[0] == "port" and (history := self._history.get(words[self._fields["ifindex"]])) is not None:
            at_ns, sent, marks = (words[self._fields[name]] for name in ("before_ns", "tx_bytes", "marks"))
            if sent:  # empty while the port is gone
                history.append(Sample(int(at_ns), int(sent), int(marks) if marks else None))
            while history and int(at_ns) - history[0].at_ns > WINDOW_NS:
                history.popleft()
