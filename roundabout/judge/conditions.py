# SPDX-License-Identifier: Apache-2.0
"""Conditions of `--fail-if`: QUANTITY COMPARISON NUMBER, about the congestion control that is judged."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from roundabout.core.errors import UsageError
from roundabout.judge.figures import NAMES, QUANTITIES, Figures, Scene
from roundabout.spec.errors import suggest

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FORM = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S+)\s*")


class Condition(NamedTuple):
    """A condition on one quantity."""

    quantity: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.quantity} {self.comparison} {self.bound:g}"

    def is_met(self, figures: Figures) -> bool:
        """Return True if the condition is met, or if the figure is missing, so that an unmeasured candidate fails."""
        value = figures.get(self.quantity)
        return value is None or COMPARISONS[self.comparison](value, self.bound)


def parse_condition(text: str, scenes: Sequence[Scene]) -> Condition:
    """Parse a condition. Raises UsageError for an invalid one, or for a quantity that `scenes` do not measure."""
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(f"--fail-if: found {text!r}, expected QUANTITY < NUMBER (or <=, >, >=), as 'jain_8 < 0.9'")
    name, comparison, number = found.groups()
    if name not in NAMES:
        hint = suggest(name, NAMES)
        raise UsageError(f"--fail-if: found the quantity {name!r}, expected one of {', '.join(NAMES)}", hint)
    scene = next(each.scene for each in QUANTITIES if each.name == name)
    if scene not in scenes:
        raise UsageError(f"--fail-if: found {name}, which {scene} measures, expected that among --only")
    return Condition(name, comparison, _number(number, text))


def _number(word: str, text: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"--fail-if: found the bound {word!r} in {text!r}, expected a number")
    return value
