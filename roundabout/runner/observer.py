# SPDX-License-Identifier: Apache-2.0
"""The interface for notifications of a run's progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from roundabout.plan import Plan, PlannedTrial
from roundabout.store import Run


@dataclass(frozen=True)
class LinkUse:
    """A link's traffic in its busier direction, including headers. Marks and backlog are of both directions.

    None means unknown.
    """

    line_rate_gbps: float
    gbps: float
    marks_per_s: float | None
    backlog_bytes: int | None  # longest queue at a switch port


@dataclass(frozen=True)
class CrossTrafficUse:
    """A cross traffic's requested load, and the sender's rate including headers.

    The sender's rate is None if the host also sends other traffic.
    """

    asked_gbps: float
    sent_gbps: float | None


class Observer(Protocol):
    """A receiver of a run's notifications, from the runner's main thread. Rates and bytes are in the papers' units."""

    def run_started(self, run: Run, plan: Plan, done: int) -> None:
        """Note the start of the run. `done` is the number of trials that are already committed."""

    def step(self, what: str) -> None:
        """Note the start of a long step, such as creating or provisioning the testbed."""

    def notice(self, text: str) -> None:
        """Note a notice that users need to read the run's results, such as routes that differ from the plan."""

    def trial_started(self, trial: PlannedTrial, attempt: int) -> None:
        """Note the start of an attempt at a trial."""

    def phase(self, what: str) -> None:
        """Note the next phase of the attempt, such as applying settings or measuring."""

    def iteration(self, job: str, number: int, ms: float) -> None:
        """Note the end of an iteration of a job's first worker after `ms`. `number` counts from 1."""

    def traffic(self, links: Mapping[str, LinkUse], crossing: Mapping[str, CrossTrafficUse]) -> None:
        """Note the rates of links and cross traffic in the last second. Unknown rates are left out."""

    def leaves(self, pending: Sequence[str]) -> None:
        """Note that the run ends immediately and leaves journal entries of the kinds `pending`."""

    def trial_ended(self, trial: PlannedTrial, reasons: list[str], again: bool, disturbed: bool = False) -> None:
        """Note that the attempt is stored. `reasons` make it disturbed or invalid.

        `again` is True if it will be repeated, and `disturbed` if the trial keeps a disturbed attempt.
        """
