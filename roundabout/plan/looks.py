# SPDX-License-Identifier: Apache-2.0
"""Looks at a growing run: after each, the run ends if its verdicts are decided, else its repetitions are doubled."""

from collections.abc import Callable
from dataclasses import dataclass

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
