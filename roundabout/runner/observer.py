# SPDX-License-Identifier: Apache-2.0
"""What a run tells whoever watches it."""

from collections.abc import Sequence
from typing import Protocol

from roundabout.plan import Plan, PlannedTrial
from roundabout.store import Run


class Observer(Protocol):
    """Told of everything worth showing, from the runner's main thread. Rates are the paper's."""

    def run_started(self, run: Run, plan: Plan, done: int) -> None:
        """The run begins; `done` of its trials were committed before."""

    def step(self, what: str) -> None:
        """Something that takes a while begins: raising the testbed, provisioning it."""

    def trial_started(self, trial: PlannedTrial, attempt: int) -> None:
        """An attempt at a trial begins."""

    def iteration(self, job: str, number: int, ms: float) -> None:
        """A job's first worker finished an iteration; `number` counts from 1."""

    def link(self, name: str, gbps: float, marks_per_s: float | None) -> None:
        """How much the bottleneck carries (headers included) in its busier direction, and ECN marks; None: unknown."""

    def leaves(self, owed: Sequence[str]) -> None:
        """The run ends at once, and leaves what it made of these kinds."""

    def trial_ended(self, trial: PlannedTrial, reasons: list[str], again: bool) -> None:
        """The attempt is stored. `reasons` make it invalid; `again`: it will be repeated."""
