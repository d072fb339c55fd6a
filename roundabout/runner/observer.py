# SPDX-License-Identifier: Apache-2.0
"""Notifications of a run's progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from roundabout.plan import Plan, PlannedTrial
from roundabout.store import Run


@dataclass(frozen=True)
class LinkUse:
    """A link's traffic, headers included, in its busier direction. Marks and backlog are of both directions.

    None means not known.
    """

    line_rate_gbps: float
    gbps: float
    marks_per_s: float | None
    backlog_bytes: int | None  # the most that waited in a switch's port


@dataclass(frozen=True)
class CrossTrafficUse:
    """A cross traffic's load, and the rate that its sender sends, headers included.

    None if the sender also sends for others.
    """

    asked_gbps: float
    sent_gbps: float | None


class Observer(Protocol):
    """Receives a run's notifications, from the runner's main thread. Rates and bytes are the paper's."""

    def run_started(self, run: Run, plan: Plan, done: int) -> None:
        """Note the start of the run. `done` trials were committed earlier."""

    def step(self, what: str) -> None:
        """Note the start of a long step, such as creating or provisioning the testbed."""

    def trial_started(self, trial: PlannedTrial, attempt: int) -> None:
        """Note the start of an attempt at a trial."""

    def phase(self, what: str) -> None:
        """Note the next phase of the attempt, such as applying settings or measuring."""

    def iteration(self, job: str, number: int, ms: float) -> None:
        """Note that a job's first worker finished an iteration. `number` counts from 1."""

    def traffic(self, links: Mapping[str, LinkUse], crossing: Mapping[str, CrossTrafficUse]) -> None:
        """Note the rates of links and cross traffic in the last second. Unknown ones are left out."""

    def leaves(self, owed: Sequence[str]) -> None:
        """Note that the run ends at once, without undoing entries of these kinds."""

    def trial_ended(self, trial: PlannedTrial, reasons: list[str], again: bool) -> None:
        """Note that the attempt is stored. `reasons` make it invalid; `again` tells whether it is repeated."""
