# SPDX-License-Identifier: Apache-2.0
"""The result of an acceptance test."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from roundabout.checks.acceptance.limits import Limits
from roundabout.checks.check import Check

Part = Literal["paths", "links", "job"]
PARTS: tuple[Part, ...] = get_args(Part)
MEANINGS = {
    "lost": "pings of ten; whole ones are as large as a host's MTU, not to be split, where small ones came",
    "rtt_ms": "the least round trip of those",
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


@dataclass(kw_only=True)
class Acceptance(Check):
    """The result of an acceptance test.

    Parts after a failed one are missing. Only a rack has the parts `settings` and `rdma`. `dscp` is the expected DSCP
    of jobs' packets.
    """

    RESULT = "acceptance"
    PARTS = PARTS
    TITLES: ClassVar = {
        "settings": "Settings, read back",
        "rdma": "RDMA's own packets",
        "paths": "Paths, before any flow",
        "links": "Flows that share links",
        "job": "The standard job beside congestors",
    }

    topology: str
    where: dict[str, str]
    limits: Limits
    dscp: int = 0

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

    def record(self) -> dict[str, Any]:
        """Return the result as JSON-compatible values."""
        return {**super().record(), "accepted": not self.failures, "limits": self.limits.model_dump()}
