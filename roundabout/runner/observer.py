# SPDX-License-Identifier: Apache-2.0
"""What a run tells whoever watches it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from roundabout.plan import Plan, PlannedTrial
from roundabout.store import Run


@dataclass(frozen=True)
class LinkUse:
    """What a link carries, headers included, in its busier direction; marks are of both, and so is the backlog.

    None: nobody could tell.
    """

    line_rate_gbps: float
    gbps: float
    marks_per_s: float | None
    backlog_bytes: int | None  # the most that waited in a switch's port


@dataclass(frozen=True)
class CrossUse:
    """A cross traffic: its load, and what its sender sends, headers included; None where that sends for others, too."""

    asked_gbps: float
    sent_gbps: float | None


class Observer(Protocol):
    """Told of everything worth showing, from the runner's main thread. Rates and bytes are the paper's."""

    def run_started(self, run: Run, plan: Plan, done: int) -> None:
        """The run begins; `done` of its trials were committed before."""

    def step(self, what: str) -> None:
        """Something that takes a while begins: raising the testbed, provisioning it."""

    def trial_started(self, trial: PlannedTrial, attempt: int) -> None:
        """An attempt at a trial begins."""

    def phase(self, what: str) -> None:
        """Another part of the attempt begins: applying settings, measuring."""

    def iteration(self, job: str, number: int, ms: float) -> None:
        """A job's first worker finished an iteration; `number` counts from 1."""

    def traffic(self, links: Mapping[str, LinkUse], crossing: Mapping[str, CrossUse]) -> None:
        """What links carried in the last second, and each cross traffic; without those of which nothing is known."""

    def leaves(self, owed: Sequence[str]) -> None:
        """The run ends at once, and leaves what it made of these kinds."""

    def trial_ended(self, trial: PlannedTrial, reasons: list[str], again: bool) -> None:
        """The attempt is stored. `reasons` make it invalid; `again`: it will be repeated."""
