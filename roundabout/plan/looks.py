# SPDX-License-Identifier: Apache-2.0
"""Looks at a growing run: after each, the run ends if its verdicts are decided, else its repetitions are doubled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from roundabout.plan.trials import Plan
from roundabout.spec.experiment import MAX_REPETITIONS

MAX_LOOKS = 4
"""Largest number of looks. Intervals grow with the planned number, and the fourth look has eight times the first's
repetitions, so that its intervals are about a third as wide.
"""


@dataclass(frozen=True)
class Look:
    """One planned look: the run with so many repetitions, all earlier ones included."""

    repetitions: int
    plan: Plan
    is_allowed: bool

    @property
    def expected_s(self) -> float:
        """Return the expected duration from the run's start to the report of this look, in seconds."""
        return self.plan.expected_s + self.plan.report_s


def plan_looks(make: Callable[[int], Plan], first: int, budget_s: float) -> list[Look]:
    """Return the looks of a run. `make` returns the plan with a number of repetitions, of which `first` is the least.

    The first look is always allowed, because a run has its own repetitions. Looks that would add no trial are left out.
    """
    looks: list[Look] = []
    for repetitions in (first << number for number in range(MAX_LOOKS)):
        if repetitions > MAX_REPETITIONS:
            break
        plan = make(repetitions)
        if looks and len(plan.trials) == len(looks[-1].plan.trials):
            break
        is_allowed = not looks or plan.expected_s + plan.report_s <= budget_s
        looks.append(Look(repetitions, plan, is_allowed))
    return looks


@dataclass(frozen=True)
class LookSchedule:
    """The schedule of a run's looks, as its manifest records it.

    `repetitions` are those of the allowed looks, which are fixed before the first trial. `spent_s` is the time that the
    run took up to the latest look.
    """

    repetitions: tuple[int, ...]
    budget_s: float
    spent_s: float = 0.0

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> Self | None:
        """Return the schedule in a run's manifest; None for a run with one look."""
        found = manifest.get("looks")
        return cls(**{**found, "repetitions": tuple(found["repetitions"])}) if found else None

    def after(self, repetitions: int) -> int | None:
        """Return the repetitions of the look after that with `repetitions`; None if it is the last or too long.

        All repetitions are expected to take as long as those so far.
        """
        following = next((each for each in self.repetitions if each > repetitions), None)
        if following is None or self.spent_s * following / repetitions > self.budget_s:
            return None
        return following
