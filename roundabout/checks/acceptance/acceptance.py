# SPDX-License-Identifier: Apache-2.0
"""The result of an acceptance test."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, get_args

from roundabout.checks.acceptance.limits import Limits
from roundabout.checks.check import Check, Verdict
from roundabout.core.verdict_words import INCONCLUSIVE

Part = Literal["paths", "bandwidth", "links", "job"]
PARTS: tuple[Part, ...] = get_args(Part)
MEANINGS = {
    "lost": "pings of ten, or of a hundred if some of ten were lost; whole ones have the size of the MTU",
    "rtt_ms": "the least round trip of those",
    "bandwidth": "of the line rate less headers, from one host to another, with no other flow on the same links",
    "write_latency_us": "of an RDMA write of 2 bytes, half of the round trip",
    "risen": "rise of a counter that must not change",
    "bus_bandwidth": "of the payload rate of a host's NICs, as nccl-tests reports it",
    "jct_ratio_cv": "standard deviation over the mean of the job's iteration time alone, over all rounds",
    "use": "of the link's payload rate, by all its flows together",
    "jain": "Jain's index of the flows' rates: 1 where all get the same",
    "marked": "share of segments that came with ECN's mark",
    "drops": "packets, by the link's ports",
    "pauses": "PFC frames that hosts received",
    "resent": "segments, by all hosts",
    "wrong_class": "packets that came with another DSCP than jobs have",
    "other_priorities": "share of a NIC's packets in other priorities than those of jobs and CNPs",
    "nic_class": "class and PFC of the jobs' packets in NICs",
    "slowdown": "iteration time over idle; of idle, over what the job takes alone by its profile",
}


def describe(verdict: Verdict) -> str:
    """Return a verdict that does not pass in words."""
    return f"{verdict.of}: {verdict.name}: found {verdict.found}, expected {verdict.expected}"


@dataclass(kw_only=True)
class Acceptance(Check):
    """The result of an acceptance test.

    Parts after a failed one are missing. Only a rack has the parts `settings` and `rdma`. `dscp` is the expected DSCP
    of jobs' packets. `hosts` has the names of each host in verdicts: its machine's, its own, and those of its links.
    """

    RESULT = "acceptance"
    PARTS = PARTS
    TITLES: ClassVar = {
        "settings": "Settings, read back",
        "rdma": "RDMA's own packets",
        "paths": "Paths, before any flow",
        "bandwidth": "What each NIC carries",
        "links": "Flows that share links",
        "job": "The standard job beside congestors",
        "counters": "Counters that must not change",
        "collective": "Bus bandwidth of collectives",
        "soak": "Soak",
    }

    topology: str
    where: dict[str, str]
    limits: Limits
    dscp: int = 0
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return the page's title."""
        return f"Acceptance of {self.topology}"

    @property
    def lead(self) -> str:
        """Return the testbed and its options."""
        return " · ".join(f"{name} {value}" for name, value in self.where.items())

    def meanings(self) -> Iterable[tuple[str, str]]:
        """Return the meanings of the figures' names."""
        return MEANINGS.items()

    def concerning(self, host: str, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Return those of the verdicts that concern a host: those that name it, and those that name no host."""
        hosts = {name: each for each, names in self.hosts.items() for name in names}
        found = []
        for verdict in verdicts:
            named = {hosts[word] for word in re.findall(r"[\w.-]*\w", verdict.of) if word in hosts}
            if host in named or not named:
                found.append(verdict)
        return found

    def record(self) -> dict[str, Any]:
        """Return the result as JSON-compatible values, with a verdict on each host, as a Slurm prolog needs it."""
        hosts = {}
        for host, (machine, *_) in self.hosts.items():
            findings = [describe(each) for each in self.concerning(host, self.failures)]
            undecided = [describe(each) for each in self.concerning(host, self.undecided)]
            word = "fail" if findings else INCONCLUSIVE if undecided else "pass"
            hosts[host] = {"machine": machine, "verdict": word, "findings": findings, "inconclusive": undecided}
        return {
            **super().record(),
            "accepted": self.verdict == "pass",
            "verdict": self.verdict,
            "ended_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "hosts": hosts,
            "limits": self.limits.model_dump(),
        }
